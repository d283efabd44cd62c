import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SETTING_NAMES } from '../../libs/config/src/settings.js';

const text = readFileSync(join(__dirname, '../../docs/reference/settings.md'), 'utf8');

describe('docs/reference/settings.md', () => {
  it('is what .env.example makes it; if it is not any more, run `node test/docs/settings.mjs`', () => {
    const script = join(__dirname, 'settings.mjs');
    expect(text).toBe(execFileSync(process.execPath, [script, '--print'], { encoding: 'utf8' }));
  });

  it('describes every setting there is', () => {
    const names = [...text.matchAll(/^\| `([A-Z][A-Z0-9_]*)`/gm)].map(([, name]) => name);
    expect(names.sort()).toEqual([...SETTING_NAMES].sort());
  });
});
