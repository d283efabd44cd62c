import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMIT_NAMES, type LimitName, limitRule } from '../../libs/config/src/index.js';
import { SETTING_NAMES } from '../../libs/config/src/settings.js';

const text = readFileSync(join(__dirname, '../../docs/reference/limits.md'), 'utf8');
const rows = [...text.matchAll(/^\| `(\w+)` +\| (\S+) +\| (\S*) +\|/gm)].map(
  ([, name, preset, setting]) => [name as LimitName, preset, setting] as const,
);

/** `openStreams` in the environment. */
const settingOf = (name: string): string => `LIMIT_${name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()}`;

describe('docs/reference/limits.md', () => {
  it('has every limit there is, and no other', () => {
    expect(rows.map(([name]) => name).sort()).toEqual([...LIMIT_NAMES].sort());
  });

  it.each(rows)('has the default of %s and its setting, and explains it', (name, preset, setting) => {
    expect(preset).toBe(limitRule(name).default?.toLocaleString('en-US') ?? 'none');
    const expected = settingOf(name);
    expect(setting).toBe(SETTING_NAMES.includes(expected) ? `\`${expected}\`` : '');
    // Retention has a page of its own.
    if (name === 'retentionDays') return;
    expect(text).toMatch(new RegExp(`\\*\\*\`${name}\`\\.\\*\\* \\w`));
  });
});
