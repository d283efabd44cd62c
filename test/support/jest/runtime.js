const { createRequire } = require('node:module');
const Runtime = require('jest-runtime').default;
const { Sources } = require('./sources.js');

/** Prisma's schema engine has room for one instance in its module: each file of tests has a module of its own. */
const NOT_SHARED = /^@prisma\/schema-engine-wasm/;

/** Packages of Jest itself that keep nothing of a file. `expect` keeps its state in the global object. */
const SHARED_OF_JEST = new Set([
  'expect',
  'jest-each',
  'jest-matcher-utils',
  'jest-message-util',
  'jest-snapshot',
  'jest-util',
  'pretty-format',
]);

/** Takes packages from the worker's own module cache (see `environment.js`), and the project's own code from `sources.js`. */
module.exports = class extends Runtime {
  constructor(config, environment, resolver, ...others) {
    super(config, environment, resolver, ...others);
    this.mapped = config.moduleNameMapper.map(([pattern]) => new RegExp(pattern));
    this.ours = [/^[./]/, /^@jest\/globals$/, NOT_SHARED, ...this.mapped];
    this.requires = new Map();
    this.sources = Sources.of(resolver, config);
    this.takeCodeFromSources();
  }

  takeCodeFromSources() {
    const { transformCache } = this;
    const { transform } = transformCache;
    transformCache.transform = (filename, options) => {
      const isOther = !filename.endsWith('.ts') || this._coverageOptions.collectCoverage;
      if (isOther) return transform.call(transformCache, filename, options);
      const { code, map } = this.sources.compile(filename);
      transformCache.sourceMaps.set(filename, map);
      return code;
    };
  }

  requireModuleOrMock(from, name) {
    if (this.ours.some((pattern) => pattern.test(name))) return this.requireOurs(from, name);
    if (!this.requires.has(from)) this.requires.set(from, createRequire(from));
    return this.requires.get(from)(name);
  }

  /** Without a name Jest looks for no mock in the folder of each module. */
  requireOurs(from, name) {
    const isMocking = this.mockState.explicitCjsMock.size > 0;
    if (isMocking || !this.mapped.some((pattern) => pattern.test(name)))
      return super.requireModuleOrMock(from, name);
    return this.requireModule(this.sources.pathOf(from, name, () => this._resolution.resolveCjs(from, name)));
  }

  requireInternalModule(from, name) {
    return SHARED_OF_JEST.has(name) ? require(name) : super.requireInternalModule(from, name);
  }
};
