import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { limitRule } from '../../libs/config/src/index.js';
import { environmentName, type SettingGroup, SETTING_GROUPS } from '../../libs/config/src/settings.js';
import { SHARED_RESOURCES, type SharedResource } from '../../libs/config/src/shared-resources.js';
import { table } from './settings.js';

const ROOT = join(__dirname, '../..');

/** The table of docs/operating/hardening.md: what an operator can set and watch. */
export function resourceTable(): string {
  const titles = ['Resource', 'Share of one tenant or address', 'At the bound', 'Bounds', 'Metrics'];
  const rows = SHARED_RESOURCES.map((resource) => {
    const { name, settings, limits, share, exceeded, metrics } = resource;
    const bounds = [...settings.map(settingText), ...new Set(limits.map(limitText))];
    return [name, filled(share, resource), exceeded, bounds.join(', '), metrics.map(code).join(', ')];
  });
  return `${table([titles, ...rows])}\n`;
}

/** The table of docs/inside/shared-resources.md: how each share is kept, and the tests that attack it. */
export function testTable(): string {
  const rows = SHARED_RESOURCES.map((resource) => {
    const { name, details = '', tests } = resource;
    return [name, filled(details, resource), tests.map(testLink).join(', ')];
  });
  return `${table([['Resource', 'How the share is kept', 'Tests'], ...rows])}\n`;
}

const code = (text: string): string => `\`${text}\``;

function testLink(file: string): string {
  const name = file.split('/').at(-1) ?? '';
  return `[${name.replace(/(\.(\w+-)?spec)?\.ts$/, '')}](../../${file})`;
}

/** A text with the values of its constants. */
const filled = (text: string, { constants }: SharedResource): string =>
  text.replaceAll(/\{(\w+)\}/g, (_, constant: string) => constantOf(constant, constants[constant] ?? ''));

/** `MAX_CONNECTIONS` (10,000) */
function settingText(key: string): string {
  const group = Object.values<SettingGroup>(SETTING_GROUPS).find(({ settings }) => key in settings);
  if (!group) throw new Error(`There is no setting ${key}`);
  const preset = group.settings[key]?.default ?? '';
  return code(environmentName(key, group)) + (preset === '' ? '' : ` (${withUnit(preset, key)})`);
}

function limitText(name: SharedResource['limits'][number]): string {
  const { default: preset } = limitRule(name);
  return code(name) + (preset === null ? '' : ` (${withUnit(String(preset), name)})`);
}

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** A default as people write it: `16 MiB` or `30 s` where the name says that it is bytes or milliseconds. */
function withUnit(value: string, name: string): string {
  if (!/^\d+$/.test(value)) return value;
  const number = Number(value);
  const grouped = (each: number): string => each.toLocaleString('en-US');
  if (/bytes/i.test(name) && number % GIB === 0) return `${grouped(number / GIB)} GiB`;
  if (/bytes/i.test(name) && number % MIB === 0) return `${grouped(number / MIB)} MiB`;
  if (/bytes/i.test(name)) return `${grouped(number / 1024)} KiB`;
  if (name.endsWith('Ms') && number >= 1_000) return `${grouped(number / 1_000)} s`;
  return grouped(number);
}

/** The value of a constant, as its file declares it. Throws if there is none. */
export function constantOf(name: string, file: string): string {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const value = new RegExp(`^(?:export )?const ${name} = ([\\d_.]+);`, 'm').exec(source)?.[1];
  if (value === undefined) throw new Error(`${file} declares no number ${name}`);
  return Number(value.replaceAll('_', '')).toLocaleString('en-US');
}
