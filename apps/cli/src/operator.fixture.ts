import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { managementUrl, database } from '../../api/src/admin/admin-api.fixture.js';
import { exitCodeOf } from './exit-codes.fixture.js';
import { run } from './program.js';

export { app, database, managementUrl, operator, url } from '../../api/src/admin/admin-api.fixture.js';

export let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-cli-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** The environment of the machine of the API: its database, and its port for operators. */
export const ownMachine = (): Record<string, string> => ({
  DATABASE_URL: database.url,
  MANAGEMENT_PORT: new URL(managementUrl).port,
});

/** The output of one command, run on the machine of the API. */
export async function baton(line: string, env: Record<string, string> = ownMachine(), input = '') {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) };
  const source = { BATON_HOME: folder, ...env };
  const code = await run(line.split(' '), { source, terminal, stdin: () => Readable.from([input]) });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** The JSON a command that must succeed prints. */
export async function json<T>(line: string): Promise<T> {
  const { code, out, err } = await baton(`${line} --json`);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out) as T;
}

/** The one sentence of a command that must fail, with the exit code that fits the sentence. */
export async function refusal(line: string, env?: Record<string, string>): Promise<string> {
  const { code, out, err } = await baton(line, env);
  expect({ code, out, err }).toEqual({ code: exitCodeOf(err), out: '', err });
  expect(err).not.toMatch(/\n\s+at |prisma\./);
  return err;
}
