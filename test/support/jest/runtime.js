const { createRequire } = require('node:module');
const { dirname } = require('node:path');
const Runtime = require('jest-runtime').default;

/** Prisma's schema engine has room for one instance in its module: each file of tests has a module of its own. */
const NOT_SHARED = /^@prisma\/schema-engine-wasm/;

/** The resolvers that remember. Jest has one for each project and run. */
const remembering = new WeakSet();

/** Jest looks at the disk for each import that `moduleNameMapper` maps, which is each import of a source, in each file of tests. */
function rememberMapped(resolver) {
  if (remembering.has(resolver)) return;
  remembering.add(resolver);
  const known = new Map();
  const { resolveStubModuleName } = resolver;
  resolver.resolveStubModuleName = function (from, name, options) {
    const key = [dirname(from), name, ...(options?.conditions ?? [])].join('\0');
    if (!known.has(key)) known.set(key, resolveStubModuleName.call(this, from, name, options));
    return known.get(key);
  };
}

/** Takes packages from the worker's own module cache: see `environment.js`. */
module.exports = class extends Runtime {
  constructor(config, environment, resolver, ...others) {
    super(config, environment, resolver, ...others);
    rememberMapped(resolver);
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
