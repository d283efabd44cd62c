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
    module: { type: 'commonjs', ignoreDynamic: true },
  });
  module._compile(code, file);
};

require('../migrate-main.ts');
