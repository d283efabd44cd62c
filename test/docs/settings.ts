import { LIMIT_NAMES, limitRule } from '../../libs/config/src/index.js';
import { environmentName, type SettingGroup, SETTING_GROUPS } from '../../libs/config/src/settings.js';

// What is generated from the tables of libs/config: `npm run generate` writes it, settings.spec.ts holds the files equal.

const LINE_WIDTH = 122;

const groups = Object.values<SettingGroup>(SETTING_GROUPS);

const EXAMPLE_INTRODUCTION =
  'Every setting of Baton with its default. Copy this file to `.env`: it works unchanged, for `npm start` and for ' +
  '`docker compose up`. Each program of Baton reads `.env` in the folder where it starts. An environment variable wins ' +
  'over `.env`. An empty value is the same as no value. `baton config check` finds mistakes. This file is made from ' +
  'libs/config/src/settings.ts by `npm run generate`.';

/** The whole of `.env.example`. */
export function envExample(): string {
  return [comment(EXAMPLE_INTRODUCTION), ...groups.map(exampleSection)].join('\n');
}

function exampleSection(group: SettingGroup): string {
  const title = `# --- ${group.title.replaceAll('`', '').toLowerCase()} `;
  const entries = Object.entries(group.settings).map(
    ([key, setting]) => `${comment(setting.description)}${environmentName(key, group)}=${setting.default}\n`,
  );
  const introduction = group.introduction ? `${comment(group.introduction)}\n` : '';
  return `${title.padEnd(112, '-')}\n\n${introduction}${entries.join('')}`;
}

function comment(text: string): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length + 1 > LINE_WIDTH) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines.map((line) => `# ${line}\n`).join('');
}

/** The tables of docs/reference/settings.md. Those of limits are in the table of docs/reference/limits.md. */
export function settingTables(): string {
  return groups.map(tableSection).join('\n');
}

function tableSection(group: SettingGroup): string {
  const introduction = group.introduction ? `${linked(group.introduction)}\n` : '';
  const title = `## ${group.title}\n\n${introduction}`;
  if (group === SETTING_GROUPS.limits) return title;
  const rows = Object.entries(group.settings).map(([key, setting]) => [
    `\`${environmentName(key, group)}\``,
    setting.default && `\`${setting.default}\``,
    linked(setting.description),
  ]);
  return `${title}${introduction && '\n'}${table([['Setting', 'Default', 'Description'], ...rows])}\n`;
}

/** Descriptions name a page of the docs, or a section of one, by its path in the repository. */
function linked(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll(
      /\(?docs\/((?:[\w-]+\/)+)([\w-]+)\.md(#[\w-]+)?\)?/g,
      (match, folder: string, name: string, anchor = '') => {
        const link = `[${anchor ? anchor.slice(1).replaceAll('-', ' ') : name}](../${folder}${name}.md${anchor})`;
        return match.startsWith('(') ? `(${link})` : link;
      },
    )
    .replaceAll('(../reference/', '(');
}

/** The table of docs/reference/limits.md. */
export function limitTable(): string {
  const rows = LIMIT_NAMES.map((name) => {
    const { counts, exceeded, required, default: preset } = limitRule(name);
    const variable = required ? '' : `\`${environmentName(name, SETTING_GROUPS.limits)}\``;
    return [`\`${name}\``, preset?.toLocaleString('en-US') ?? 'none', variable, counts, exceeded];
  });
  return `${table([['Limit', 'Default', 'Setting', 'Unit', 'Over the limit'], ...rows])}\n`;
}

/** What docker-compose.yml passes on to its containers: the settings that it does not set itself. */
export function composeNames(composeFile: string): string {
  const names = groups
    .filter((group) => group !== SETTING_GROUPS.local)
    .flatMap((group) => Object.keys(group.settings).map((key) => environmentName(key, group)))
    .filter((name) => !new RegExp(`^    ${name}: .`, 'm').test(composeFile));
  return names.map((name) => `    ${name}:\n`).join('');
}

/** A table as Prettier writes it. */
export function table(rows: readonly (readonly string[])[]): string {
  const [titles = [], ...others] = rows;
  const widths = titles.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  return [line(titles), line(widths.map((width) => '-'.repeat(width))), ...others.map(line)].join('\n');
}
