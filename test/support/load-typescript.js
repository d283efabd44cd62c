// TypeScript outside of Jest, compiled as it is loaded.
const { readFileSync } = require('node:fs');
const { transformSync } = require('@swc/core');
require('./resolve-typescript.js');

const jsc = { parser: { syntax: 'typescript', decorators: true }, target: 'es2022' };

require.extensions['.ts'] = (module, filename) => {
  const source = readFileSync(filename, 'utf8');
  const { code } = transformSync(source, {
    filename,
    jsc,
    module: { type: 'commonjs' },
    sourceMaps: 'inline',
  });
  module._compile(code, filename);
};
