const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');

const ROOT = join(__dirname, '../../..');

/**
 * Files that take long, the longest first. Any of them alone at the end would leave the cores idle. Those that mostly wait stand
 * beside those that need the CPU.
 */
const LONG = [
  'test/e2e/upgrade.nightly-spec.ts',
  'test/interop/interop.nightly-spec.ts',
  'test/interop/langgraph/langgraph.nightly-spec.ts',
  'test/chaos/chaos.nightly-spec.ts',
  'test/chaos/machines.nightly-spec.ts',
  'test/e2e/large-turns.nightly-spec.ts',
  'test/e2e/watchdog.e2e-spec.ts',
  'test/e2e/local.e2e-spec.ts',
  'test/e2e/authors.e2e-spec.ts',
  'test/e2e/recovery.e2e-spec.ts',
  'test/console/pages-with-prices.e2e-spec.ts',
  'test/e2e/agents-in-code.e2e-spec.ts',
  'test/e2e/several-apis.e2e-spec.ts',
  'test/e2e/agent-processes.e2e-spec.ts',
  'test/isolation/isolation.e2e-spec.ts',
  'test/e2e/over-redis.e2e-spec.ts',
  'test/e2e/slow-postgres.nightly-spec.ts',
  'test/isolation/rights.e2e-spec.ts',
  'test/e2e/payments.e2e-spec.ts',
  'test/fuzz/fuzz.e2e-spec.ts',
  'test/e2e/sign-in.e2e-spec.ts',
  'test/e2e/subjects.e2e-spec.ts',
  'test/e2e/approvals.e2e-spec.ts',
  'test/console/pages.e2e-spec.ts',
  'test/e2e/packages.nightly-spec.ts',
  'test/e2e/time-zones.nightly-spec.ts',
  'test/e2e/faults.e2e-spec.ts',
  'test/e2e/fairness.e2e-spec.ts',
  'test/e2e/master-key.e2e-spec.ts',
  'test/e2e/restore-roles.nightly-spec.ts',
  'test/e2e/tracing.e2e-spec.ts',
  'test/e2e/mcp.e2e-spec.ts',
].map((file) => join(ROOT, file));

/** Then by project. */
const PROJECTS = ['nightly', 'e2e', 'integration', 'unit'];

/** The long files first: the short ones fill what is left of the cores at the end. */
module.exports = class extends Sequencer {
  constructor(options) {
    super(options);
    const missing = LONG.find((file) => !existsSync(file));
    if (missing)
      throw new Error(`${missing} is in the list of test/support/jest/sequencer.js, but does not exist.`);
  }

  sort(tests) {
    const rank = ({ path, context }) => {
      const index = LONG.indexOf(path);
      return index >= 0 ? index : LONG.length + PROJECTS.indexOf(context.config.displayName.name);
    };
    return [...super.sort(tests)].sort((a, b) => rank(a) - rank(b));
  }
};
