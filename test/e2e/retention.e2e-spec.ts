import { Client } from 'pg';
import { randomUUID } from 'node:crypto';
import { nightlyIt } from '../support/nightly.js';
import { type Frame, RawCaller, type RpcAnswer, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

const UNKNOWN = '0198c0de-0000-7000-8000-000000000000';
/** 0.2 s. */
const SHORT = 0.000002;

describe('retention', () => {
  let stack: Stack;
  let database: Client;
  let tenant: TestTenant;
  let caller: RawCaller;
  beforeAll(async () => {
    stack = await Stack.start({ driver: 'postgres', workers: 2, env: { RETENTION_SWEEP_MS: '100' } });
    database = new Client({ connectionString: stack.database.url });
    await database.connect();
    await database.query(`SET baton.tenant = 'system'`);
    tenant = await stack.createTenant();
    caller = new RawCaller(stack.url(0), tenant.token);
  });
  afterAll(async () => {
    await database.end();
    await stack.stop();
  });

  const keepFor = (days: number | null, { slug } = tenant) =>
    database.query('UPDATE tenants SET limits = $1 WHERE slug = $2', [
      JSON.stringify({ retentionDays: days }),
      slug,
    ]);

  /** Repeats a question until its answer is the one that is waited for. */
  async function until<T>(ask: () => Promise<T>, isIt: (answer: T) => boolean): Promise<T> {
    for (;;) {
      const answer = await ask();
      if (isIt(answer)) return answer;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  const deleted = async (taskId: string): Promise<void> => {
    const ask = () => database.query('SELECT FROM tasks WHERE id = $1', [taskId]);
    await until(ask, ({ rowCount }) => rowCount === 0);
  };

  /** A task that was completed and is deleted by now; another waits for its caller all the while. */
  async function deletedTask(): Promise<string> {
    const sent = await caller.call('SendMessage', sendParams('hello'));
    const { id } = sent.result!.task as { id: string };
    await keepFor(SHORT);
    await deleted(id);
    await keepFor(null);
    return id;
  }

  /** The answer to a streaming call that is refused. */
  async function refusalOf(stream: AsyncGenerator<Frame>): Promise<RpcAnswer> {
    for await (const { data } of stream) {
      if (data.error) return data;
    }
    throw new Error('the stream ended as if nothing were wrong');
  }

  /** The JSON of the answer to a streaming call that became no stream. */
  const refused = async (stream: AsyncGenerator<Frame>): Promise<RpcAnswer> =>
    refusalOf(stream).catch((error: unknown) => {
      const json = /^Error: not a stream: (.*)$/.exec(String(error))?.[1];
      if (json === undefined) throw error;
      return JSON.parse(json) as RpcAnswer;
    });

  it('names the deletion to callers of both versions', async () => {
    const id = await deletedTask();
    const gone = new RegExp(
      `^Task not found: ${id} ended at .+Z and was deleted after 0.000002 days of retention$`,
    );
    const old = new RawCaller(stack.url(0), tenant.token, '0.3');
    const message = {
      kind: 'message',
      messageId: randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text: 'x' }],
    };
    const answers = [
      await caller.call('GetTask', { id }),
      await caller.call('CancelTask', { id }),
      await caller.call('SendMessage', sendParams('more', { taskId: id })),
      await refused(caller.stream('SendStreamingMessage', sendParams('more', { taskId: id }))),
      await refused(caller.stream('SubscribeToTask', { id })),
      await refused(caller.stream('SubscribeToTask', { id }, 1)),
      await old.call('tasks/get', { id }),
      await old.call('tasks/cancel', { id }),
      await old.call('message/send', { message: { ...message, taskId: id } }),
      await refused(old.stream('tasks/resubscribe', { id }, 1)),
    ];
    for (const { error } of answers) {
      expect(error).toMatchObject({ code: -32001, message: expect.stringMatching(gone) as string });
    }
    const metadata = { taskId: id, retentionDays: '0.000002', endedAt: expect.any(String) as string };
    expect(answers[0]?.error?.data).toMatchObject([{ reason: 'TASK_NOT_FOUND', metadata }]);
    expect(answers[6]?.error?.data).toMatchObject({ reason: 'TASK_NOT_FOUND', metadata });
    expect((await caller.call('ListTasks', {})).result).toMatchObject({ tasks: [], totalSize: 0 });
    const native = await fetch(`${stack.apis[0]!.url}/v1/tasks/${id}`, {
      headers: { authorization: `Bearer ${tenant.token}` },
    });
    expect([native.status, await native.text()]).toEqual([404, expect.stringContaining('days of retention')]);
  });

  it('answers other tenants and other agents as for an id that never was', async () => {
    const id = await deletedTask();
    const stranger = await stack.createTenant();
    const calls: [string, (taskId: string) => object][] = [
      ['GetTask', (taskId) => ({ id: taskId })],
      ['CancelTask', (taskId) => ({ id: taskId })],
      ['SubscribeToTask', (taskId) => ({ id: taskId })],
      ['SendMessage', (taskId) => sendParams('mine', { taskId })],
    ];
    for (const other of [
      new RawCaller(stack.url(0), stranger.token),
      new RawCaller(stack.url(0, 'index'), tenant.token),
    ]) {
      for (const [method, params] of calls) {
        const foreign = JSON.stringify(await other.call(method, params(id)));
        expect(foreign).toContain('-32001');
        expect(foreign.replaceAll(id, UNKNOWN)).toBe(
          JSON.stringify(await other.call(method, params(UNKNOWN))),
        );
      }
    }
  });

  it('names the deletion to clients that choose the ids of their tasks, under those ids', async () => {
    const orloj = new RawCaller(`${stack.apis[0]!.url}/v1/agents/echo/a2a`, tenant.token, '0.1');
    const clientId = `job-${randomUUID()}`;
    const params = { id: clientId, message: { role: 'user', parts: [{ type: 'text', text: 'hello' }] } };
    const sent = await orloj.call('tasks/send', params);
    expect(sent.result?.status.state).toBe('completed');
    const { rows } = await database.query<{ task_id: string }>(
      'SELECT task_id FROM task_aliases WHERE client_id = $1',
      [clientId],
    );
    await keepFor(SHORT);
    await deleted(rows[0]!.task_id);
    await keepFor(null);
    const answers = [
      await orloj.call('tasks/get', { id: clientId }),
      await orloj.call('tasks/cancel', { id: clientId }),
      await orloj.call('tasks/send', params),
      await refused(orloj.stream('tasks/sendSubscribe', params)),
      await refused(orloj.stream('tasks/resubscribe', { id: clientId })),
    ];
    for (const { error } of answers) {
      expect(error).toMatchObject({
        code: -32001,
        message: expect.stringMatching(
          /^task not found: it ended at .+Z and was deleted after 0.000002 days/,
        ) as string,
        data: { task_id: clientId },
      });
    }
  });

  it('keeps a task that waits for its caller, and lets it go on', async () => {
    const asked = await caller.call(
      'SendMessage',
      sendParams('?', { metadata: { echo: { askInput: true } } }),
    );
    const { id } = asked.result!.task as { id: string };
    await deletedTask();
    const answered = await caller.call('SendMessage', sendParams('here', { taskId: id }));
    expect(answered.result?.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  /** A completed task with a log of that many events, as it would be after a long run. */
  async function longTask(events: number, by = caller): Promise<string> {
    const sent = await by.call('SendMessage', sendParams('hello'));
    const { id } = sent.result!.task as { id: string };
    const grown = await database.query<{ last_sequence: number }>(
      `UPDATE tasks SET last_sequence = last_sequence + $2, artifacts_sequence = last_sequence + $2
       WHERE id = $1 RETURNING last_sequence`,
      [id, events],
    );
    const last = grown.rows[0]!.last_sequence;
    await database.query(
      `UPDATE task_events SET sequence = $2, first_sequence = first_sequence + $3 WHERE task_id = $1 AND sequence = $2::int - $3::int`,
      [id, last, events],
    );
    await database.query(
      `INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload)
       SELECT e.tenant_id, e.task_id, coalesce(e.first_sequence, e.sequence) - s, 1, $4 FROM task_events e, generate_series(1, $3::int) s
       WHERE e.task_id = $1 AND e.sequence = $2`,
      [id, last, events, '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}'],
    );
    return id;
  }

  it('ends the stream of a slow reader whose log is deleted with the reason', async () => {
    // A tenant of its own: a sweep that is under way still has the retention of the test before.
    const owner = await stack.createTenant();
    const reader = new RawCaller(stack.url(0), owner.token);
    const id = await longTask(60_000, reader);
    const stream = reader.stream('SubscribeToTask', { id }, 1);
    const seen: number[] = [];
    let end: RpcAnswer | undefined;
    for await (const frame of stream) {
      if (frame.data.error) end = frame.data;
      else seen.push(frame.id);
      if (seen.length !== 1_000) continue;
      await keepFor(SHORT, owner);
      const ask = () =>
        database.query('SELECT FROM task_tombstones WHERE task_id = $1 AND purged_to = last_sequence', [id]);
      await until(ask, ({ rowCount }) => rowCount === 1);
    }
    expect(seen).toEqual(seen.map((_, i) => i + 2));
    expect(seen.length).toBeLessThan(60_000);
    expect(end?.error?.message).toContain('was deleted after');
  });

  nightlyIt('is gone on with by another worker when one is killed in the middle of a log', async () => {
    const id = await longTask(100_000);
    await keepFor(SHORT);
    const progress = async () => {
      const { rows } = await database.query<{ purged_to: number; last_sequence: number }>(
        'SELECT purged_to, last_sequence FROM task_tombstones WHERE task_id = $1',
        [id],
      );
      return rows[0] ?? { purged_to: 0, last_sequence: 1 };
    };
    const atKill = await until(progress, ({ purged_to }) => purged_to > 0);
    await stack.killWorkers();
    const left = await progress();
    expect(left.purged_to).toBeLessThan(left.last_sequence);
    expect(left.purged_to).toBeGreaterThanOrEqual(atKill.purged_to);
    expect((await caller.call('GetTask', { id })).error?.code).toBe(-32001);
    await stack.addWorker();
    await until(progress, ({ purged_to, last_sequence }) => purged_to === last_sequence);
    await keepFor(null);
    for (const table of ['task_events', 'task_messages', 'runs']) {
      const { rowCount } = await database.query(`SELECT FROM ${table} WHERE task_id = $1 LIMIT 1`, [id]);
      expect([table, rowCount]).toEqual([table, 0]);
    }
  });
});
