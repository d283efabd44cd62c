const { createRequire } = require('node:module');
const Runtime = require('jest-runtime').default;

/** Takes packages from the worker's own module cache: see `environment.js`. */
module.exports = class extends Runtime {
  constructor(config, ...others) {
    super(config, ...others);
    this.ours = [
      /^[./]/,
      /^@jest\/globals$/,
      ...config.moduleNameMapper.map(([pattern]) => new RegExp(pattern)),
    ];
    this.requires = new Map();
  }

  requireModuleOrMock(from, name) {
    if (this.ours.some((pattern) => pattern.test(name))) return super.requireModuleOrMock(from, name);
    if (!this.requires.has(from)) this.requires.set(from, createRequire(from));
    return this.requires.get(from)(name);
  }
};
