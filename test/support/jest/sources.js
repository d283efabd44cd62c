const { createHash } = require('node:crypto');
const { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');

/** The sources by Jest's resolver: it has one for each project and run. */
const ofResolvers = new WeakMap();

/**
 * The project's own code: where an import leads, and the JavaScript of a file. A worker looks at the disk once. Jest looks again for
 * each file of tests, and compiles each source once for each project.
 */
class Sources {
  paths = new Map();
  compiled = new Map();

  constructor({ cacheDirectory, transform: [[, transformer, options]] }) {
    this.transformer = require(transformer).createTransformer({ ...options, sourceMaps: true });
    this.folder = join(cacheDirectory, 'baton-sources');
    mkdirSync(this.folder, { recursive: true });
    const { version } = require('@swc/core');
    this.how = JSON.stringify({ version, options });
  }

  static of(resolver, config) {
    if (!ofResolvers.has(resolver)) ofResolvers.set(resolver, new Sources(config));
    return ofResolvers.get(resolver);
  }

  /** @param resolve asks Jest */
  pathOf(from, name, resolve) {
    const key = `${dirname(from)}\0${name}`;
    if (!this.paths.has(key)) this.paths.set(key, resolve());
    return this.paths.get(key);
  }

  /** @returns `code`, and the path of its source map */
  compile(filename) {
    if (!this.compiled.has(filename)) this.compiled.set(filename, this.fromDisk(filename));
    return this.compiled.get(filename);
  }

  fromDisk(filename) {
    const source = readFileSync(filename, 'utf8');
    const key = createHash('sha1').update(`${this.how}\0${filename}\0${source}`).digest('hex');
    const file = join(this.folder, `${key}.js`);
    const map = `${file}.map`;
    if (existsSync(file)) return { code: readFileSync(file, 'utf8'), map };
    const result = this.transformer.process(source, filename, { supportsStaticESM: false });
    write(map, result.map);
    write(file, result.code);
    return { code: result.code, map };
  }
}

/** Another worker may write the same file, or read it. */
function write(file, text) {
  const partial = `${file}.${process.pid}`;
  writeFileSync(partial, text);
  renameSync(partial, file);
}

module.exports = { Sources };
