import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type ControlMessage, createMessaging, type Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { exitCodeOf } from './exit-codes.fixture.js';
import { run } from './program.js';

export let database: TestDatabase;
export let folder: string;
let listening: Messaging | undefined;

beforeAll(async () => {
  database = await createDatabase();
  folder = mkdtempSync(join(tmpdir(), 'baton-cli-'));
});

afterEach(async () => {
  await listening?.close();
  listening = undefined;
});

afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true });
});

/** What an operator sees of one command. */
export async function baton(
  line: string,
  env: Record<string, string> = { DATABASE_URL: database.url },
  input = '',
) {
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

/** @returns waits for as many messages as the running processes receive from now on */
export async function listen(): Promise<(count: number) => Promise<ControlMessage[]>> {
  const messages: ControlMessage[] = [];
  let news = (): void => undefined;
  listening = createMessaging({ databaseUrl: database.url, log: Logger.silent() });
  await listening.start(10_000);
  await listening.subscribeControl((message) => {
    messages.push(message);
    news();
  });
  return async (count) => {
    while (messages.length < count) await new Promise<void>((resolve) => (news = resolve));
    return messages;
  };
}
