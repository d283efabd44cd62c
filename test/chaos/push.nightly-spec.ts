import pLimit from 'p-limit';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from '../support/ports.js';
import { DRIVERS } from '../support/index.js';
import { Stack } from '../support/stack.js';
import { LOG } from '../support/log-sql.js';
import { until } from '../support/until.js';

// Workers and receivers are killed while they work, and Redis forgets everything once. More events, and what became of them:
// PUSH_EVENTS=10000. The other driver: PUSH_DRIVER=postgres.

const EVENTS = Number(process.env.PUSH_EVENTS ?? 240);
/** Of each task: `submitted`, `working` and `completed` to each of two webhooks, and all six events to the config sent with it. */
const TASKS = Math.ceil(EVENTS / 12);
/** As other tests have, and more for more events. */
const TIMEOUT_MS = 15 * 60_000 + EVENTS * 40;
const PROGRAM = join(__dirname, 'push-receiver.mjs');
/** Requests of one worker at one time: as many can be under way when something is killed. */
const CONCURRENCY = 8;
const WORKERS = 2;
const MAX_IN_FLIGHT = CONCURRENCY * WORKERS;

/** The id of the config that is sent with each message. */
const INLINE = 'inline';

interface Line {
  id: string;
  at: number;
  genuine: boolean;
}

/** A receiver, a process of its own. What it has received is in a file, so a kill loses nothing of it. */
class Receiver {
  /** Of the webhook or the push notification config. */
  id = INLINE;
  secret = `whsec_${randomBytes(32).toString('base64')}`;
  readonly url: string;
  private process: ChildProcess | undefined;
  private readonly file: string;

  private constructor(
    folder: string,
    private readonly port: number,
  ) {
    this.file = join(folder, `${port}.ndjson`);
    this.url = `http://127.0.0.1:${port}/`;
  }

  static async ofWebhook(folder: string): Promise<Receiver> {
    const receiver = new Receiver(folder, await freePort());
    ({ id: receiver.id, secret: receiver.secret } = await ask('POST', '', { url: receiver.url }));
    await receiver.start();
    return receiver;
  }

  /** That of the config which each message brings with it. */
  static async ofConfigs(folder: string): Promise<Receiver> {
    const receiver = new Receiver(folder, await freePort());
    await receiver.start();
    return receiver;
  }

  async start(): Promise<void> {
    this.process = spawn(process.execPath, [PROGRAM, String(this.port), this.file], {
      env: { SECRET: this.secret },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    await once(this.process, 'message');
  }

  /** `kill -9` */
  async kill(): Promise<void> {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill('SIGKILL');
    await once(this.process, 'exit');
  }

  /** How many lines there are. It is asked often, so it parses none of them. */
  get count(): number {
    return existsSync(this.file) ? readFileSync(this.file, 'utf8').split('\n').length - 1 : 0;
  }

  get lines(): Line[] {
    if (!existsSync(this.file)) return [];
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Line);
  }

  /** The sequences that came, in the order in which they came, by task. */
  get byTask(): Map<string, number[]> {
    const tasks = new Map<string, number[]>();
    for (const { id } of this.lines) {
      const [task, config, sequence] = id.split(':');
      expect(config).toBe(this.id === INLINE ? INLINE : `webhook%3A${this.id}`);
      tasks.set(task!, [...(tasks.get(task!) ?? []), Number(sequence)]);
    }
    return tasks;
  }
}

let stack: Stack;
let token: string;
let folder: string;
let receivers: Receiver[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const env = {
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: randomBytes(32).toString('base64'),
    PUSH_NOTIFICATIONS: 'all',
    PUSH_CONCURRENCY: String(CONCURRENCY),
    PUSH_PER_HOST: '16',
    PUSH_PER_TENANT: '16',
    // What a killed worker had in hand is free for others after this and five seconds.
    PUSH_TIMEOUT_MS: '15000',
    PUSH_FIRST_RETRY_MS: '100',
    PUSH_MAX_RETRY_MS: '500',
    LEASE_MS: '3000',
    LEASE_HEARTBEAT_MS: '1000',
    MAX_ATTEMPTS: '10',
  };
  const driver = DRIVERS.find((each) => each === process.env.PUSH_DRIVER) ?? DRIVERS[0]!;
  stack = await Stack.start({ driver, workers: WORKERS, env });
  ({ token } = await stack.createTenant('admin'));
});
afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.kill()));
  await stack.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(method: string, path: string, body?: object): Promise<{ id: string; secret: string }> {
  const response = await fetch(`${stack.apis[0]!.url}/v1/webhooks${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as { id: string; secret: string };
}

async function send({ id, url, secret }: Receiver): Promise<string> {
  const message = {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text: 'hi' }],
    metadata: { echo: { chunks: 3, delayMs: 20 } },
  };
  const authentication = { scheme: 'StandardWebhooks', credentials: secret };
  const taskPushNotificationConfig = { id, url, authentication };
  const params = { message, configuration: { returnImmediately: true, taskPushNotificationConfig } };
  const response = await fetch(stack.url(0), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  });
  const text = await response.text();
  const { result } = JSON.parse(text) as { result?: { task: { id: string } } };
  if (!result) throw new Error(text);
  return result.task.id;
}

/** Sequences in the log of each task: those at which it got another state, and all. */
interface Wanted {
  changes: Map<string, number[]>;
  all: Map<string, number[]>;
}

async function wantedFromLog(): Promise<Wanted> {
  const client = new Client({ connectionString: stack.database.url });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    const { rows } = await client.query<{ task_id: string; sequence: number; state: string | null }>(
      `SELECT task_id, sequence, coalesce(payload->'statusUpdate', payload->'task')->'status'->>'state' AS state
       FROM ${LOG} e ORDER BY task_id, sequence`,
    );
    const wanted: Wanted = { changes: new Map(), all: new Map() };
    const states = new Map<string, string>();
    for (const { task_id: id, sequence, state } of rows) {
      wanted.all.set(id, [...(wanted.all.get(id) ?? []), sequence]);
      if (state === null || states.get(id) === state) continue;
      states.set(id, state);
      wanted.changes.set(id, [...(wanted.changes.get(id) ?? []), sequence]);
    }
    return wanted;
  } finally {
    await client.end();
  }
}

/** What a receiver has got, each sequence once, in the order in which it first came. */
const inOrder = (sequences: readonly number[]): number[] => [...new Set(sequences)];
const repeats = (sequences: readonly number[]): number => sequences.length - new Set(sequences).size;

/** Requests that were given up because the receiver was slow: the machine is busy. Each may be repeated. */
const timeouts = (): number =>
  stack.workers.flatMap((worker) => worker.log().match(/it did not answer within/g) ?? []).length;

it(
  'every event comes at least once and in order, whatever is killed, and nothing to a webhook that was deleted',
  async () => {
    receivers = [await Receiver.ofConfigs(folder)];
    for (let i = 0; i < 3; i += 1) receivers.push(await Receiver.ofWebhook(folder));
    const [inline, first, second, deleted] = receivers as [Receiver, Receiver, Receiver, Receiver];
    const received = (): number => inline.count + first.count + second.count;
    const reach = async (share: number): Promise<void> => {
      await until(() => received() >= share * EVENTS);
    };
    const begin = Date.now();
    let kills = 0;
    const replaceWorker = async (n: number): Promise<void> => {
      kills += 1;
      await stack.workers[n]!.kill();
      await stack.addWorker();
    };
    const restart = async (receiver: Receiver): Promise<void> => {
      kills += 1;
      await receiver.kill();
      await receiver.start();
    };
    let deletedAt = 0;
    const strike = async (): Promise<void> => {
      await reach(0.1);
      await replaceWorker(0);
      await reach(0.25);
      await restart(first);
      await reach(0.4);
      await stack.redis?.flush();
      await until(() => deleted.count > 0);
      await ask('DELETE', `/${deleted.id}`);
      deletedAt = Date.now();
      await reach(0.55);
      await Promise.all([replaceWorker(1), restart(second), restart(inline)]);
      await reach(0.75);
      await Promise.all([restart(first), restart(inline)]);
    };
    const atOnce = pLimit(8);
    const [tasks] = await Promise.all([
      Promise.all(Array.from({ length: TASKS }, () => atOnce(() => send(inline)))),
      strike(),
    ]);

    const staying = (wanted: Wanted) =>
      [
        [inline, wanted.all],
        [first, wanted.changes],
        [second, wanted.changes],
      ] as const;

    // Until all have everything: without that the test hangs, and its timeout names it.
    let wanted: Wanted;
    for (;;) {
      wanted = await wantedFromLog();
      const haveAll = staying(wanted).every(([{ byTask }, log]) =>
        [...log].every(([task, sequences]) => inOrder(byTask.get(task) ?? []).length >= sequences.length),
      );
      const isEnded = [...wanted.changes.values()].every((sequences) => sequences.length >= 3);
      if (wanted.all.size === TASKS && isEnded && haveAll) break;
      await delay(200);
    }

    expect(new Set(wanted.all.keys())).toEqual(new Set(tasks));
    for (const [{ byTask }, log] of staying(wanted)) {
      expect([...log.keys()].map((task) => [task, inOrder(byTask.get(task) ?? [])])).toEqual([...log]);
    }
    for (const receiver of receivers) {
      expect(receiver.lines.filter(({ genuine }) => !genuine)).toEqual([]);
      // A repeated event comes before the next one.
      for (const [task, sequences] of receiver.byTask) {
        expect([task, sequences]).toEqual([task, sequences.toSorted((a, b) => a - b)]);
        expect(repeats(sequences)).toBeLessThanOrEqual(kills + timeouts());
      }
    }
    // Only what was under way when something was killed comes twice.
    const total = receivers
      .flatMap(({ byTask }) => [...byTask.values()].map(repeats))
      .reduce((a, b) => a + b, 0);
    expect(total).toBeLessThanOrEqual(kills * MAX_IN_FLIGHT + timeouts());

    // What was on its way when the webhook was deleted, and no more.
    const late = deleted.lines.filter(({ at }) => at > deletedAt);
    expect(late.length).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    expect(new Set(late.map(({ id }) => id.split(':')[0])).size).toBe(late.length);
    expect(deleted.lines.length).toBeGreaterThan(0);

    if (process.env.PUSH_EVENTS !== undefined) {
      const figures = {
        tasks: TASKS,
        events: received() - total,
        kills,
        repeated: total,
        timeouts: timeouts(),
      };
      const seconds = (Date.now() - begin) / 1000;
      process.stdout.write(`${JSON.stringify({ ...figures, late: late.length, seconds })}\n`);
    }
  },
  TIMEOUT_MS,
);
