import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMIT_NAMES } from '../../libs/config/src/index.js';
import { SETTING_NAMES } from '../../libs/config/src/settings.js';

const text = readFileSync(join(__dirname, '../../docs/reference/limits.md'), 'utf8');
const rows = [...text.matchAll(/^\| `(\w+)` +\| (\S+) +\|/gm)].map(
  ([, name, preset]) => [name, preset] as const,
);

/** `openStreams` in the environment. */
const settingOf = (name: string): string => `LIMIT_${name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()}`;

describe('docs/reference/limits.md', () => {
  it('has every limit there is, and no other', () => {
    expect(rows.map(([name]) => name).sort()).toEqual([...LIMIT_NAMES].sort());
  });

  it.each(rows)('says where the default of %s comes from, and explains it', (name, preset) => {
    const setting = settingOf(name!);
    const expected = SETTING_NAMES.includes(setting) ? `\`${setting}\`` : '1';
    expect(preset).toBe(expected);
    // Retention has a page of its own.
    if (name === 'retentionDays') return;
    expect(text).toMatch(new RegExp(`\\*\\*\`${name}\`\\.\\*\\* \\w`));
  });
});
