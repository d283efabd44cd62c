// Migrates DATABASE_URL in a process of its own, as `npm run migrate` does.
const { transformFileSync } = require('@swc/core');
require('../../../../test/support/resolve-typescript.js');

require.extensions['.ts'] = (module, file) => {
  const { code } = transformFileSync(file, {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    // Files in TypeScript are also loaded later: only `require` finds them.
    module: { type: 'commonjs', ignoreDynamic: false },
  });
  module._compile(code, file);
};

require('../migrate-main.ts');
