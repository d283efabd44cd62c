/**
 * Makes the npm packages of a release from what is built, in dist/packages or in the folder that is named:
 *
 * - `baton`: the server, the command line, and `baton start`, which needs no clone
 * - `@baton/agent`: helpers for agents in code and their tests
 * - `create-baton-agent`: for `npm create baton-agent`
 */
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist/packages'));
const run = promisify(execFile);

const readManifest = async (folder) => JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8'));
const platform = await readManifest('.');
const { version, license, engines } = platform;
const { GITHUB_REPOSITORY } = process.env;
/** Provenance is accepted only for a package that names where it was built. */
const repository = GITHUB_REPOSITORY && {
  type: 'git',
  url: `git+https://github.com/${GITHUB_REPOSITORY}.git`,
};

/** @param manifest what of package.json is not the same for all packages */
async function pack(manifest, fill) {
  const folder = join(OUT, manifest.name);
  await mkdir(folder, { recursive: true });
  await fill(folder);
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const whole = { ...manifest, private: undefined, version, license, engines, repository };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(whole, null, 2)}\n`);
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', OUT], { cwd: folder });
}

/** Caches belong to one version of Node.js, and no program reads the maps of bundles by default. */
const isShipped = (path) => !/bundle\.(cache|js\.map)$|\.stamp$/.test(path);

async function packPlatform(folder) {
  for (const name of ['apps', 'libs', 'console'])
    await cp(join(ROOT, 'dist', name), join(folder, 'dist', name), { recursive: true, filter: isShipped });
  for (const name of ['bin/baton.cjs', 'prisma/migrations', 'README.md', 'CHANGELOG.md', 'SECURITY.md'])
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
}

async function packAuthor(folder) {
  const entry = join(ROOT, 'dist/libs/agents/src/author/index.js');
  await build({
    entryPoints: [entry],
    outfile: join(folder, 'index.js'),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['@a2a-js/sdk'],
    // Node.js finds the names for `import { … }` in the text of the module. The bundler drops that of the compiler.
    footer: { js: `0 && (module.exports = { ${Object.keys(require(entry)).join(', ')} });` },
  });
  const options = ['--declaration', '--emitDeclarationOnly', '--ignoreConfig', '--skipLibCheck', '--strict'];
  const modules = ['--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
  const source = join(ROOT, 'libs/agents/src');
  const folders = ['--rootDir', source, '--outDir', join(folder, 'types')];
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [tsc, ...options, ...modules, ...folders, join(source, 'author/index.ts')]);
}

const packCreator = (folder) => cp(join(ROOT, 'bin/create-baton-agent'), folder, { recursive: true });

/** Of everything that a new agent needs, as Baton is tested with it. */
const versionsOf = (templates) => {
  const known = { ...platform.devDependencies, ...platform.dependencies };
  const names = Object.values(templates).flatMap(({ packages }) => packages);
  return Object.fromEntries(names.map((name) => [name, known[name]]));
};

await rm(OUT, { recursive: true, force: true });
const { name, description, dependencies, optionalDependencies } = platform;
const [author, creator] = await Promise.all([
  readManifest('libs/agents/src/author'),
  readManifest('bin/create-baton-agent'),
]);
await pack(
  { name, description, bin: { baton: 'bin/baton.cjs' }, dependencies, optionalDependencies },
  packPlatform,
);
await pack(
  {
    name: author.name,
    description: author.description,
    main: 'index.js',
    types: 'types/author/index.d.ts',
    dependencies: { '@a2a-js/sdk': dependencies['@a2a-js/sdk'] },
  },
  packAuthor,
);
await pack(
  {
    ...creator,
    versions: { [author.name]: version, ...versionsOf(creator.templates) },
  },
  packCreator,
);
console.log(`The packages of ${version} are in ${OUT}.`);
