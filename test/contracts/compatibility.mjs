// Writes docs/calling/compatibility.md from the names of the contract tests: node test/contracts/compatibility.mjs
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = dirname(fileURLToPath(import.meta.url));
const FILE = join(FOLDER, '../../docs/calling/compatibility.md');

/** What each contract is about, by its profile; its lines are numbered with this letter. */
const CONTRACTS = [
  { profile: 'arbiter', letter: 'A', title: 'Arbiter: `POST /v1/a2a/agents/{agent}` and `/v1/requests`' },
  { profile: 'langsmith', letter: 'L', title: 'LangSmith Agent Server: `POST /a2a/{assistant_id}`' },
  { profile: 'capsule', letter: 'C', title: 'Capsule Agents: `POST /`' },
  {
    profile: 'society',
    letter: 'S',
    title: 'Society: `GET /.well-known/agent.json` and `tasks/send` at `POST /`',
  },
  { profile: 'orloj', letter: 'O', title: 'Orloj: `POST /a2a`, `/v1/agent-systems/{name}/a2a`' },
  { profile: 'spec', letter: 'P', title: 'The specification, 0.3 and 1.0: `POST /agents/{agent}`' },
];

const INTRODUCTION = `# Compatibility

After reading this page you know what clients of the A2A specification and of five other systems can rely on, and which
path they call. A task made through one path is visible through all others.

Each line below is a test of that name in \`test/contracts/\`, over HTTP against a running server. Complete exchanges are
stored byte for byte in \`test/contracts/golden/\`. \`node test/contracts/compatibility.mjs\` writes this page from the
names of the tests.

One rule is not part of these contracts and holds on every path: a message that is sent again joins the task that it has
made ([retries](idempotency.md)).
`;

/** Every line that has a test: [number, text], in the order of the numbers. */
function linesOf(letter) {
  const sources = readdirSync(FOLDER).filter((name) => name.endsWith('.ts'));
  const text = sources.map((name) => readFileSync(join(FOLDER, name), 'utf8')).join('\n');
  const tests = text.matchAll(new RegExp(`\\bit\\(\\s*'${letter}-(\\d+) ((?:[^'\\\\]|\\\\.)+)'`, 'g'));
  return [...tests].map(([, number, says]) => [Number(number), says]).sort(([a], [b]) => a - b);
}

/** A table as Prettier writes it. */
function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => [...row[i]].length)));
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const pad = (row) => line(row.map((cell, i) => cell + ' '.repeat(widths[i] - [...cell].length)));
  const [titles, ...others] = rows;
  return [pad(titles), line(widths.map((width) => '-'.repeat(width))), ...others.map(pad)].join('\n');
}

const sections = CONTRACTS.map(({ profile, letter, title }) => {
  const rows = linesOf(letter).map(([number, says]) => [`${letter}-${number}`, says]);
  return `## ${title}\n\nProfile \`${profile}\`.\n\n${table([['Line', 'What clients find'], ...rows])}\n`;
});
const document = [INTRODUCTION, ...sections].join('\n');

if (process.argv.includes('--print')) process.stdout.write(document);
else writeFileSync(FILE, document);
