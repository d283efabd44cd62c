import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { limitRule } from '../../libs/config/src/index.js';
import { environmentName, type SettingGroup, SETTING_GROUPS } from '../../libs/config/src/settings.js';
import { SHARED_RESOURCES, type SharedResource } from '../../libs/config/src/shared-resources.js';
import { table } from './settings.js';

const ROOT = join(__dirname, '../..');

/** The table of docs/operating/hardening.md. */
export function resourceTable(): string {
  const titles = ['Resource', 'Bounds', 'Share of one tenant or address', 'At the bound', 'Metrics', 'Tests'];
  return `${table([titles, ...SHARED_RESOURCES.map(row)])}\n`;
}

function row(resource: SharedResource): string[] {
  const { name, settings, limits, constants, share, exceeded, metrics, tests } = resource;
  const bounds = [...settings.map(settingText), ...new Set(limits.map(limitText))];
  const filled = share.replaceAll(/\{(\w+)\}/g, (_, constant: string) =>
    constantOf(constant, constants[constant] ?? ''),
  );
  const links = tests.map(
    (file) =>
      `[${file
        .split('/')
        .at(-1)
        ?.replace(/\.(\w+-)?spec\.ts$/, '')}](../../${file})`,
  );
  return [
    name,
    bounds.join(', '),
    filled,
    exceeded,
    metrics.map((each) => `\`${each}\``).join(', '),
    links.join(', '),
  ];
}

/** `MAX_CONNECTIONS` (10,000) */
function settingText(key: string): string {
  const group = Object.values<SettingGroup>(SETTING_GROUPS).find(({ settings }) => key in settings);
  if (!group) throw new Error(`There is no setting ${key}`);
  const preset = group.settings[key]?.default ?? '';
  return `\`${environmentName(key, group)}\`${preset === '' ? '' : ` (${grouped(preset)})`}`;
}

function limitText(name: SharedResource['limits'][number]): string {
  const { default: preset } = limitRule(name);
  return `\`${name}\`${preset === null ? '' : ` (${grouped(String(preset))})`}`;
}

const grouped = (value: string): string =>
  /^\d+$/.test(value) ? Number(value).toLocaleString('en-US') : value;

/** The value of a constant, as its file declares it. Throws if there is none. */
export function constantOf(name: string, file: string): string {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const value = new RegExp(`^(?:export )?const ${name} = ([\\d_.]+);`, 'm').exec(source)?.[1];
  if (value === undefined) throw new Error(`${file} declares no number ${name}`);
  return Number(value.replaceAll('_', '')).toLocaleString('en-US');
}
