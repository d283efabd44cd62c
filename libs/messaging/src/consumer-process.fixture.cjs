// A consumer in a process of its own, for the test to kill. Reads its options from the first argument, prints
// `ready`, then the id of each run it is given; with `hold` it never finishes one.
const { transformFileSync } = require('@swc/core');
require('../../../test/support/resolve-typescript.js');

require.extensions['.ts'] = (module, file) => {
  const { code } = transformFileSync(file, {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    module: { type: 'commonjs' },
  });
  module._compile(code, file);
};

const { createMessaging } = require('./create-messaging.ts');

const { hold, ...options } = JSON.parse(process.argv[2]);
const log = { info() {}, warn: console.error, error: console.error };
const messaging = createMessaging({ ...options, log });

messaging.start(10_000).then(() => {
  messaging.consumeRuns(10, async (job) => {
    console.log(job.runId);
    if (hold) await new Promise(() => setInterval(() => undefined, 1_000));
  });
  console.log('ready');
});
