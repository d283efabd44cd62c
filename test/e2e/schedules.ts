import { Readable } from 'node:stream';
import { Client } from 'pg';
import { run } from '../../apps/cli/src/program.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import type { Wired } from '../support/wire.js';

const EVERY_SECOND = { cron: '* * * * * *', agent: 'echo' };
/** The agent asks, and its task is not over until it is answered. */
const ASKING = { parts: [{ text: 'what now?' }], metadata: { echo: { askInput: true } } };

const startStack = shareStack(DRIVERS[0]!, CRASH_SETTINGS);
let stack: Stack;
let token: string;
let client: Client;

describe('a schedule', () => {
  beforeAll(async () => {
    stack = await startStack();
    await stack.addWorker();
    ({ token } = await stack.createTenant());
    client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
  });
  afterAll(async () => {
    await client.end();
    await stack.killWorkers(stack.workers.slice(1));
  });

  it('makes one task at each time, though the queue is emptied and a worker killed', async () => {
    const spec = { ...EVERY_SECOND, name: 'every-second', text: 'tick', overlap: 'allow', max_count: 7 };
    // No other schedule is pending: the sweep finds this one by itself.
    const again = await create(spec);
    await when(again, ({ fired }) => fired >= 2);
    await stack.redis?.flush();
    await when(again, ({ fired }) => fired >= 4);
    await stack.workers.pop()!.kill();
    const ended = await when(again, ({ next_at }) => next_at === null);
    expect(ended).toMatchObject({ fired: 7, last_outcome: { outcome: 'started' } });
    const due = (await tasksOf(again)).map(({ dueAt }) => Date.parse(dueAt));
    expect(due).toEqual(Array.from({ length: 7 }, (_, second) => due[0]! + second * 1_000));
  });

  it('makes one task of a schedule that fires once, though the queue is emptied', async () => {
    const { id: once, at } = await createInTime(3_000);
    await stack.redis?.flush();
    const fired = await when(once, ({ last_task }) => last_task?.state === 'completed');
    const [only, ...more] = await tasksOf(once);
    expect([only?.dueAt, more]).toEqual([at, []]);
    expect(fired).toMatchObject({ fired: 1, next_at: null, last_task: { request_id: only!.id } });
  });

  it('lets a time that comes too early be skipped, wait, or end the task before', async () => {
    const make = (overlap: string, more = {}) =>
      create({ ...EVERY_SECOND, name: overlap, overlap, message: ASKING, ...more });
    const skip = await make('skip');
    const queue = await make('queue', { max_count: 2 });
    const cancel = await make('cancel-previous', { max_count: 2 });

    const asks = ({ last_task }: Wired): boolean => last_task?.state === 'input-required';
    const wasSkipped = ({ last_outcome }: Wired): boolean => last_outcome?.outcome === 'skipped';
    expect(await when(skip, (schedule) => wasSkipped(schedule) && asks(schedule))).toMatchObject({
      fired: 1,
    });

    const ended = await when(
      cancel,
      ({ fired, last_task }) => fired === 2 && last_task.state !== 'submitted',
    );
    const [before, after] = await tasksOf(cancel);
    expect(before?.state).toBe(5);
    expect(ended).toMatchObject({ next_at: null, last_task: { request_id: after!.id } });

    const waiting = await when(queue, (schedule) => schedule.waiting && asks(schedule));
    expect(waiting).toMatchObject({ fired: 1 });
    const taskId = waiting.last_task.request_id as string;
    await new RawCaller(stack.url(0), token).call('SendMessage', sendParams('go on', { taskId }));
    await when(queue, ({ fired }) => fired === 2);
    expect(await tasksOf(queue)).toHaveLength(2);
    // It would fire every second for the subjects after this one.
    expect((await ask('DELETE', `/${skip}`)).status).toBe(204);
  });

  it('is paused, resumed, fired by hand and removed over the command line', async () => {
    const baton = (...args: string[]) => tenantsCli('schedules', ...args);
    const spec = ['--agent', 'echo', '--cron', '0 8 * * *', '--time-zone', 'Asia/Tokyo'];
    await baton('create', 'morning', ...spec, '--text', 'good morning');
    await baton('pause', 'morning');
    expect(await baton('list')).toMatch(/morning +echo +0 8 \* \* \* +Asia\/Tokyo +paused/);
    await baton('resume', 'morning');
    const { request_id: taskId } = JSON.parse(await baton('run', 'morning', '--json'));
    const shown = JSON.parse(await baton('show', 'morning', '--json'));
    expect(shown).toMatchObject({ time_zone: 'Asia/Tokyo', fired: 0, last_task: { request_id: taskId } });
    expect(shown.next_at).toMatch(/T23:00:00\.000Z$/);
    await baton('remove', 'morning');
    expect((await ask('GET', '/morning')).status).toBe(404);
  });
});

const ask = (method: string, path = '', body?: object) =>
  stack.rest(token).call(method, `/v1/schedules${path}`, body);

async function create(schedule: object): Promise<string> {
  const { status, json } = await ask('POST', '', schedule);
  expect({ status, error: json.error }).toEqual({ status: 201, error: undefined });
  return json.id as string;
}

/** A schedule that fires once. A time that passes while it is created is refused: a slow machine gets more. */
async function createInTime(aheadMs: number): Promise<{ id: string; at: string }> {
  const at = new Date(Date.now() + aheadMs).toISOString();
  const { status, json } = await ask('POST', '', { name: 'once', agent: 'echo', at, text: 'now' });
  if (status === 400 && Date.now() >= Date.parse(at)) return createInTime(2 * aheadMs);
  expect({ status, error: json.error }).toEqual({ status: 201, error: undefined });
  return { id: json.id as string, at };
}

/** What a command prints that a tenant runs in its own place. */
async function tenantsCli(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const source = { BATON_URL: stack.apis[0]!.url, BATON_TOKEN: token };
  const cli = { source, terminal: { out: print, err: print }, stdin: () => Readable.from([]) };
  expect([await run(args, cli), lines]).toEqual([0, lines]);
  return lines.join('\n');
}

/** The schedule as soon as it is as wanted. */
async function when(id: string, isSo: (schedule: Wired) => boolean): Promise<Wired> {
  for (;;) {
    const { json } = await ask('GET', `/${id}`);
    if (isSo(json)) return json;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The tasks of a schedule, as they were made. */
async function tasksOf(id: string): Promise<{ id: string; state: number; dueAt: string }[]> {
  const { rows } = await client.query(
    `SELECT id, state, metadata->'baton.schedule'->>'dueAt' AS "dueAt" FROM tasks
     WHERE metadata->'baton.schedule'->>'id' = $1 ORDER BY 3`,
    [id],
  );
  return rows as { id: string; state: number; dueAt: string }[];
}
