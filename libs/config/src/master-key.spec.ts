import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEnvironment, loadLocalEnvironment } from './environment.js';
import { EnvironmentError } from './environment-error.js';

const [ONE, TWO, THREE] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];
const [one, two, three] = [ONE, TWO, THREE].map((key) => key.toString('base64')) as [string, string, string];
const folder = mkdtempSync(join(tmpdir(), 'baton-key-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(text: string): string {
  const path = join(folder, `key-${Math.random()}`);
  writeFileSync(path, text);
  return path;
}

const keysOf = (settings: Record<string, string>) => {
  const { masterKey, previousMasterKeys } = loadEnvironment({ DATABASE_URL: 'postgres://a/b', ...settings });
  return [masterKey, ...previousMasterKeys];
};

function problemOf(settings: Record<string, string>): string {
  try {
    keysOf(settings);
  } catch (error) {
    if (error instanceof EnvironmentError) return error.message;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('the master key', () => {
  it('comes from a file, with earlier keys on further lines', () => {
    const BATON_MASTER_KEY_FILE = fileWith(`${one}\r\n\n ${two}\n`);
    expect(keysOf({ BATON_MASTER_KEY_FILE })).toEqual([ONE, TWO]);
    expect(keysOf({ BATON_MASTER_KEY_FILE, BATON_MASTER_KEY_PREVIOUS: three })).toEqual([ONE, TWO, THREE]);
  });

  it('comes from a command, which runs once in a process', () => {
    const counted = join(folder, 'counted');
    const BATON_MASTER_KEY_COMMAND = `printf x >> '${counted}'; printf '%s\\n%s' ${one} ${two}`;
    expect(keysOf({ BATON_MASTER_KEY_COMMAND })).toEqual([ONE, TWO]);
    expect(keysOf({ BATON_MASTER_KEY_COMMAND })).toEqual([ONE, TWO]);
    expect(readFileSync(counted, 'utf8')).toBe('x');
  });

  it('is that of the setting, if more than one is given, and then of the file', () => {
    const BATON_MASTER_KEY_FILE = fileWith(two);
    const BATON_MASTER_KEY_COMMAND = 'exit 1';
    expect(keysOf({ BATON_MASTER_KEY: one, BATON_MASTER_KEY_FILE, BATON_MASTER_KEY_COMMAND })).toEqual([ONE]);
    expect(keysOf({ BATON_MASTER_KEY_FILE, BATON_MASTER_KEY_COMMAND })).toEqual([TWO]);
    expect(keysOf({})).toEqual([undefined]);
  });

  it('is not made by npm start where there is one', () => {
    expect(loadLocalEnvironment({}).hasMasterKey).toBe(false);
    for (const name of ['BATON_MASTER_KEY_FILE', 'BATON_MASTER_KEY_COMMAND'])
      expect(loadLocalEnvironment({ [name]: 'x' }).hasMasterKey).toBe(true);
  });

  it.each<[string, () => Record<string, string>, string]>([
    [
      'a missing file',
      () => ({ BATON_MASTER_KEY_FILE: join(folder, 'none') }),
      '/none", which cannot be read (ENOENT)',
    ],
    [
      'an empty file',
      () => ({ BATON_MASTER_KEY_FILE: fileWith('\n') }),
      'BATON_MASTER_KEY_FILE gives no key',
    ],
    [
      'a wrong file',
      () => ({ BATON_MASTER_KEY_FILE: fileWith(`${one}\nhunter2`) }),
      'BATON_MASTER_KEY_FILE gives a line that is no key: it must give the base64 of 32 random bytes',
    ],
    [
      'a failing command',
      () => ({ BATON_MASTER_KEY_COMMAND: 'echo hunter2; echo sealed >&2; exit 3' }),
      'BATON_MASTER_KEY_COMMAND failed (exit code 3: sealed): it must print the key',
    ],
    [
      'a command that prints none',
      () => ({ BATON_MASTER_KEY_COMMAND: 'echo hunter2' }),
      'BATON_MASTER_KEY_COMMAND gives a line that is no key',
    ],
  ])('is refused without being shown: %s', (_what, settings, problem) => {
    const found = problemOf(settings());
    expect(found).toContain(problem);
    expect(found).not.toContain('hunter2');
  });
});
