import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { BatonProcess } from '../support/baton-process.js';
import { Hold, times } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { nightlyDescribe } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/** Longer than a busy machine keeps the CPU from a process: an innocent run may lose no attempt to that. */
const STALL_MS = 12_000;
const FREEZES = `--require ${join(__dirname, '../support/freeze.fixture.cjs')}`;

let stack: Stack;
let caller: RawCaller;
const hold = new Hold();
beforeAll(async () => {
  const stall = String(STALL_MS);
  const env = { ...hold.env, NODE_OPTIONS: FREEZES, LOOP_STALL_MS: stall, LEASE_MS: stall };
  stack = await Stack.start({ driver: DRIVERS[0]!, env });
  const { token } = await stack.createTenant();
  caller = new RawCaller(stack.url(0), token);
});
afterAll(async () => {
  await stack.stop();
  hold.remove();
});

const INNOCENTS = 4;

// The deaths of a run are counted in Postgres: messaging has no part in it. recovery.e2e-spec kills workers on both drivers.
nightlyDescribe('a run that freezes its worker each time', () => {
  let client: Client;
  beforeAll(async () => {
    client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
  });
  afterAll(() => client.end());

  type Row = { task_id: string; state: string; deaths: number; pid: string };
  const runs = async (): Promise<Row[]> => {
    const text = `SELECT task_id, state, deaths, split_part(worker_id, '-', 1) AS pid FROM runs`;
    return (await client.query<Row>(text)).rows;
  };
  const runsWhen = (holds: (rows: Row[]) => boolean): Promise<Row[]> =>
    until(async () => {
      const rows = await runs();
      return holds(rows) && rows;
    });

  it('fails after its attempts, and those that were beside it complete', async () => {
    const send = async (agent: string, params: object): Promise<string> => {
      const configuration = { returnImmediately: true };
      const { result } = await caller
        .at(stack.url(0, agent))
        .call('SendMessage', { ...params, configuration });
      return result?.task.id as string;
    };
    const hostile = await send('echo', sendParams('hostile', { metadata: { echo: { delayMs: 600_000 } } }));
    hold.hold();
    const innocents = await Promise.all(
      Array.from({ length: INNOCENTS }, (_, i) => send('pacer', sendParams(times(2, `run ${i}`)))),
    );

    for (const deaths of [0, 1, 2]) {
      // Then each runs alone, in any order.
      if (deaths === 2) hold.release();
      const running = (row: Row): boolean => row.state === 'running' && row.deaths === deaths;
      const rows = await runsWhen((all) => {
        const there = all.filter(running);
        // As long as they are allowed to be together, all of them are when the worker freezes.
        const wanted = deaths < 2 ? INNOCENTS + 1 : 1;
        return there.length >= wanted && there.some(({ task_id: id }) => id === hostile);
      });
      if (deaths === 2) {
        // Time for the others to come beside it, if anything lets them.
        for (let looks = 0; looks < 100 && (await runs()).filter(running).length === 1; looks++)
          await delay(50);
        expect((await runs()).filter(running)).toMatchObject([{ task_id: hostile }]);
      }
      const { pid } = rows.find(({ task_id: id }) => id === hostile)!;
      const worker = stack.workers.find((one) => String(one.pid) === pid)!;
      worker.signal('SIGUSR2');
      await worker.exited;
      await stack.addWorker();
    }

    const rows = await runsWhen((all) => all.every(({ state }) => ['succeeded', 'failed'].includes(state)));
    const ended = Object.fromEntries(rows.map(({ task_id: id, state }) => [id, state]));
    expect(ended).toEqual({
      ...Object.fromEntries(innocents.map((id) => [id, 'succeeded'])),
      [hostile]: 'failed',
    });
    const { result } = await caller.call('GetTask', { id: hostile });
    expect(result?.status.message.parts[0].text).toContain('Given up after 3 attempts');
  });
});

describe('a process whose event loop stands still', () => {
  /** The log's line about its end. */
  const lastWords = (process: BatonProcess) => {
    const line = process.log().match(/^.*the event loop is blocked.*$/m)?.[0] ?? 'null';
    return JSON.parse(line) as { process: string; inHand: number; stoodStillMs: number; stack: string[] };
  };

  it('is left alone when all of it was suspended, or while a debugger is attached', async () => {
    const [api, worker] = [stack.apis[0]!, stack.workers.at(-1)!];
    const debugged = await stack.addWorker({ NODE_OPTIONS: `${FREEZES} --inspect=127.0.0.1:0` });
    worker.signal('SIGSTOP');
    api.signal('SIGSTOP');
    debugged.signal('SIGUSR2');
    // For longer than the limit: that is what the time is about.
    await delay(STALL_MS + 3_000);
    expect(lastWords(debugged)).toBeNull();
    await stack.killWorkers([debugged]);
    api.signal('SIGCONT');
    worker.signal('SIGCONT');
    const answer = await caller.call('SendMessage', sendParams('awake'));
    expect(answer.result?.task.status.state).toBe('TASK_STATE_COMPLETED');
    for (const process of [api, worker]) expect(lastWords(process)).toBeNull();
  });

  it('is killed, worker and API alike, and its log has the reason and the stack', async () => {
    const [api, worker] = [stack.apis[0]!, stack.workers.at(-1)!];
    const stream = caller.stream(
      'SendStreamingMessage',
      sendParams('x', { metadata: { echo: { chunks: 100_000, delayMs: 1000 } } }),
    );
    for await (const { data } of stream) if (data.result?.artifactUpdate) break;
    worker.signal('SIGUSR2');
    api.signal('SIGUSR2');
    // Nothing but a signal ends a process without a code.
    expect(await Promise.all([worker.exited, api.exited])).toEqual([null, null]);
    expect(lastWords(worker)).toMatchObject({ process: 'worker', inHand: 1 });
    expect(lastWords(api)).toMatchObject({ process: 'api' });
    for (const { stoodStillMs, stack: frames } of [lastWords(worker), lastWords(api)]) {
      expect(stoodStillMs).toBeGreaterThanOrEqual(STALL_MS);
      expect(frames[0]).toMatch(/^standStill \(.*freeze\.fixture\.cjs:\d+\)$/);
    }
  });
});
