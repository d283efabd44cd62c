import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SETTING_NAMES } from '../../libs/config/src/settings.js';
import { composeNames, envExample, limitTable, settingTables } from './settings.js';
import { withGenerated } from './with-generated.js';

const ROOT = join(__dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** Every file that is generated, or has a generated part, as it should be. */
const GENERATED: Readonly<Record<string, (text: string) => string>> = {
  '.env.example': envExample,
  'docker-compose.yml': (text) => withGenerated(text, composeNames(text)),
  'docs/reference/settings.md': (text) => withGenerated(text, `\n${settingTables()}\n`),
  'docs/reference/limits.md': (text) => withGenerated(text, `\n${limitTable()}\n`),
};

describe('what is generated from the tables of libs/config', () => {
  it.each(Object.entries(GENERATED))('%s is up to date; if not, run `npm run generate`', (file, generate) => {
    const expected = generate(read(file));
    if (process.env.WRITE_GENERATED) writeFileSync(join(ROOT, file), expected);
    expect(read(file)).toBe(expected);
  });
});

describe('docs/reference/settings.md and docs/reference/limits.md', () => {
  it('describe every setting there is', () => {
    const settings = [...read('docs/reference/settings.md').matchAll(/^\| `([A-Z][A-Z0-9_]*)`/gm)];
    const limits = [...read('docs/reference/limits.md').matchAll(/^\| `\w+` +\| \S+ +\| `(LIMIT_\w+)`/gm)];
    expect([...settings, ...limits].map(([, name]) => name).sort()).toEqual([...SETTING_NAMES].sort());
  });
});
