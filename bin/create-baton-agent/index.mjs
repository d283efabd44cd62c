#!/usr/bin/env node
// Makes the folder of an agent in code. It is beside the other program of a clone that people start by name, and not in
// `apps/`, whose code is compiled: what is here is copied as it is. It is a package of its own, too (packages.mjs).
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HERE = dirname(fileURLToPath(import.meta.url));
const CLONE = join(HERE, '../..');
const USAGE = `Usage: npx create-baton-agent <folder> [--javascript]

Makes the folder of an agent in code, with a test and lint. The name of the folder becomes the agent's slug.

  --javascript   write JavaScript (default: TypeScript)`;

/** As the server takes it: letters, digits and hyphens. */
const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const { templates, versions } = manifestOf(HERE);
/** A released package has the versions of an agent's packages. In a clone they are the clone's own. */
const IN_CLONE = versions === undefined;

function main() {
  const { values, positionals } = readArguments();
  const [name] = positionals;
  if (values.help) return console.log(USAGE);
  if (name === undefined || positionals.length > 1) fail(USAGE);
  const folder = resolve(name);
  const slug = basename(folder);
  if (!SLUG.test(slug)) {
    fail(
      `"${slug}" cannot be a slug: name the folder with lower-case letters, digits and hyphens, such as my-agent.`,
    );
  }
  if (existsSync(folder) && readdirSync(folder).length > 0)
    fail(`${name} is not empty: choose another folder.`);
  write(folder, slug, values.javascript ? 'javascript' : 'typescript');
  console.log(next(name, slug, values.javascript ? 'index.js' : 'index.ts'));
}

function readArguments() {
  try {
    const options = {
      javascript: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    };
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return fail(`${error.message}\n\n${USAGE}`);
  }
}

function write(folder, slug, template) {
  mkdirSync(folder, { recursive: true });
  cpSync(join(HERE, template), folder, { recursive: true });
  // Not in the templates: there it would apply to the linter of Baton.
  writeFileSync(
    join(folder, '.oxlintrc.json'),
    `${JSON.stringify({ categories: { correctness: 'error' } })}\n`,
  );
  const title = slug.charAt(0).toUpperCase() + slug.slice(1).replaceAll('-', ' ');
  const file = join(folder, 'agent.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('{{title}}', title));
  const { scripts, packages } = templates[template];
  const known = versions ?? versionsOfClone(folder);
  const devDependencies = Object.fromEntries(
    ['@baton/agent', ...packages].map((name) => [name, known[name]]),
  );
  const manifest = { name: slug, version: '1.0.0', private: true, type: 'module', scripts, devDependencies };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Those that Baton itself is tested with. */
function versionsOfClone(folder) {
  const { dependencies, devDependencies } = manifestOf(CLONE);
  const author = `file:${relative(folder, join(CLONE, 'libs/agents/src/author'))}`;
  return { ...devDependencies, ...dependencies, '@baton/agent': author };
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

const next = (name, slug, module) => `The agent "${slug}" is in ${name}.

Run it, and keep this running. It loads the agent again when you save a file:

  BATON_AGENTS_DIR=${relative('', dirname(resolve(name))) || '.'} BATON_DEV=1 ${IN_CLONE ? 'npm start' : 'npx baton start'}

Ask it, in a second terminal:

  ${IN_CLONE ? 'node bin/baton.cjs' : 'npx baton'} send ${slug} "Ada"

Then change ${join(name, module)}, save it, and ask again. To test and lint it:

  cd ${name} && npm install && npm test && npm run lint`;

function fail(message) {
  console.error(message);
  process.exit(1);
}

main();
