// Writes docs/reference/settings.md from .env.example: node test/docs/settings.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const FILE = join(ROOT, 'docs/reference/settings.md');

const INTRODUCTION = `# Settings

After reading this page you can configure every program of Baton. This page is made from
[.env.example](../../.env.example) by \`node test/docs/settings.mjs\`.

\`\`\`
cp .env.example .env
npx baton config check      # names mistakes; exit code 1 if there are any
\`\`\`

- Settings are environment variables. Each program also reads \`.env\` in the folder where it starts. An environment variable
  wins over \`.env\`.
- An empty value is the same as no value.
- Durations are in milliseconds (ms), sizes in bytes, unless the description names another unit.
- A name that looks like a setting and is none (\`LIMIT_RUN_AT_ONCE\`) is a warning in the log of each process.
- A process with an invalid setting does not start. The error names the setting and the remedy, never the value.
`;

/** Titles of the sections of .env.example. */
const TITLES = {
  services: 'Services',
  'every process': 'Every process',
  'limits of a tenant': 'Limits of a tenant',
  api: 'API',
  worker: 'Worker',
  'npm start, docker compose and npx baton': '`npm start`, `docker compose` and `npx baton`',
};

/** The links of a description: pages are named by their path in the repository. */
const linked = (text) =>
  text
    .replaceAll('|', '\\|')
    .replaceAll(/\(?docs\/((?:[\w-]+\/)+)([\w-]+)\.md\)?/g, (match, folder, name) => {
      const link = `[${name}](../${folder}${name}.md)`;
      return match.startsWith('(') ? `(${link})` : link;
    })
    .replaceAll('(../reference/', '(');

/** A table as Prettier writes it. */
function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => [...row[i]].length)));
  const pad = (row) =>
    `| ${row.map((cell, i) => cell + ' '.repeat(widths[i] - [...cell].length)).join(' | ')} |`;
  const [titles, ...others] = rows;
  return [
    pad(titles),
    `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`,
    ...others.map(pad),
  ].join('\n');
}

/** One section: its title, the text before its first setting, and a row for each setting. */
function sectionOf(title, lines) {
  const rows = [];
  const paragraphs = [];
  let comment = [];
  for (const line of lines) {
    const [, name, preset] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
    if (name) {
      if (comment.length === 0) throw new Error(`.env.example says nothing about ${name}`);
      rows.push([`\`${name}\``, preset && `\`${preset}\``, linked(comment.join(' '))]);
      comment = [];
    } else if (line.startsWith('# ')) comment.push(line.slice(2));
    else if (comment.length > 0) {
      paragraphs.push(linked(comment.join(' ')));
      comment = [];
    }
  }
  const text = paragraphs.map((paragraph) => `${paragraph}\n\n`).join('');
  return `## ${TITLES[title]}\n\n${text}${table([['Setting', 'Default', 'Description'], ...rows])}\n`;
}

const [, ...parts] = readFileSync(join(ROOT, '.env.example'), 'utf8').split(/^# --- (.+?) -+$/m);
const sections = Object.keys(TITLES).map((title) => {
  const at = parts.indexOf(title);
  if (at < 0) throw new Error(`.env.example has no section "${title}"`);
  return sectionOf(title, parts[at + 1].split('\n'));
});
const document = [INTRODUCTION, ...sections].join('\n');

if (process.argv.includes('--print')) process.stdout.write(document);
else writeFileSync(FILE, document);
