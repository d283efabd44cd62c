// Jest's global set-up runs outside its module system: teaches Node's `require` that `./x.js` may be `./x.ts`, and where
// the libraries' sources are.
const Module = require('node:module');
const { existsSync } = require('node:fs');
const { dirname, resolve } = require('node:path');

const resolveFilename = Module._resolveFilename;

Module._resolveFilename = function (request, parent, ...rest) {
  if (/^\.{1,2}\/.*\.js$/.test(request) && parent?.filename?.endsWith('.ts')) {
    const source = resolve(dirname(parent.filename), request.replace(/\.js$/, '.ts'));
    if (existsSync(source)) return source;
  }
  // Threads whose code is TypeScript.
  if (request === 'piscina' && parent?.filename?.endsWith('.ts'))
    return resolve(__dirname, 'jest/piscina.js');
  const [, library] = /^@baton\/([^/]+)$/.exec(request) ?? [];
  if (library) return resolve(__dirname, '../../libs', library, 'src/index.ts');
  return resolveFilename.call(this, request, parent, ...rest);
};
