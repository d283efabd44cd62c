const { createRequire } = require('node:module');
const Runtime = require('jest-runtime').default;

/** Prisma's schema engine has room for one instance in its module: each file of tests has a module of its own. */
const NOT_SHARED = /^@prisma\/schema-engine-wasm/;

/** Takes packages from the worker's own module cache: see `environment.js`. */
module.exports = class extends Runtime {
  constructor(config, ...others) {
    super(config, ...others);
    this.ours = [
      /^[./]/,
      /^@jest\/globals$/,
      NOT_SHARED,
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
