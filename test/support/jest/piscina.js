// In place of piscina under Jest: threads whose code is TypeScript, as it is before a build.
const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { Piscina } = require('../../../node_modules/piscina/dist/main.js');

const LOADER = join(__dirname, '../load-typescript.js');

module.exports.Piscina = class extends Piscina {
  constructor(options) {
    const source = options.filename.replace(/\.js$/, '.ts');
    const isSource = !existsSync(options.filename) && existsSync(source);
    super(isSource ? { ...options, filename: source, execArgv: ['--require', LOADER] } : options);
  }
};
