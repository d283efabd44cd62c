const { default: Sequencer } = require('@jest/test-sequencer');

const ORDER = ['e2e', 'integration', 'unit'];

/** The long files first: the short ones fill what is left of the cores at the end. */
module.exports = class extends Sequencer {
  sort(tests) {
    const rank = ({ context }) => ORDER.indexOf(context.config.displayName.name);
    return [...super.sort(tests)].sort((a, b) => rank(a) - rank(b));
  }
};
