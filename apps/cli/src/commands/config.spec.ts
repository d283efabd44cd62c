import { run } from '../program.js';

const DATABASE_URL = 'postgres://localhost/baton';

async function check(source: Record<string, string>, ...options: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) };
  const none = () => {
    throw new Error('It reads nothing.');
  };
  const code = await run(['config', 'check', ...options], { source, terminal, stdin: none });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

describe('config check', () => {
  it('names the settings, and nothing else without a fault', async () => {
    expect(await check({ DATABASE_URL, LEASE_MS: '5000' })).toEqual({
      code: 0,
      out: 'Set: DATABASE_URL, LEASE_MS. The other settings have their defaults.',
      err: '',
    });
    expect(await check({})).toMatchObject({ code: 0, out: 'All settings have their defaults.' });
  });

  it('names settings that are wrong or mistyped, with exit code 1 and without their values', async () => {
    const source = { LIMIT_RUN_AT_ONCE: 'hunter2', BATON_MASTER_KEY: 'hunter2' };
    const { code, out, err } = await check(source);
    expect(code).toBe(1);
    expect(err.split('\n')).toEqual([
      expect.stringMatching(/^BATON_MASTER_KEY is not valid: set it to the base64 of 32 random bytes/),
      'LIMIT_RUN_AT_ONCE is not a setting; did you mean LIMIT_RUNS_AT_ONCE?',
    ]);
    const json = await check(source, '--json');
    expect(JSON.parse(json.out)).toMatchObject({
      problems: [expect.any(String)],
      unknown: [expect.any(String)],
    });
    expect(json.code).toBe(1);
    expect(out + err + json.out + json.err).not.toContain('hunter2');
  });
});
