import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { GENERATIONS, type Said, type Version } from '../support/generations.js';
import { Hold, times } from '../support/hold.js';
import { driversOf, NIGHTLY } from '../support/nightly.js';
import { type Frame, RawCaller, type RpcAnswer } from '../support/raw-caller.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';
import type { Wired } from '../support/wire.js';

/** By day that of 1.0: the rule is in message-router.spec, and is the same for both. */
const VERSIONS = (Object.keys(GENERATIONS) as Version[]).filter((version) => NIGHTLY || version === '1.0');

describe.each(driversOf('postgres'))('idempotency on %s', (driver) => {
  const startStack = shareStack(
    driver,
    {},
    {
      apis: 2,
      installAgents: (agents) => {
        installTestAgents(agents, 'pacer');
        cpSync(join(__dirname, '../../examples/agents/greeter'), join(agents, 'greeter'), {
          recursive: true,
        });
      },
    },
  );
  let stack: Stack;
  let hold: Hold;
  let token: string;
  let stranger: string;

  beforeAll(async () => {
    stack = await startStack();
    hold = new Hold(stack.env.HOLD_FILE);
    token = (await stack.createTenant()).token;
    stranger = (await stack.createTenant()).token;
  });

  const callerAt = (api: number, version: Version = '1.0', agent = 'echo', as = token): RawCaller =>
    new RawCaller(stack.url(api, agent), as, version);

  /** What there is of a context: its tasks, newest first. */
  async function tasksIn(contextId: string, api = 1): Promise<Wired[]> {
    const { result } = await callerAt(api).call('ListTasks', { contextId, includeArtifacts: true });
    return result!.tasks as Wired[];
  }

  /** The whole log of a task that has ended. */
  async function logOf(id: string): Promise<Frame[]> {
    const frames: Frame[] = [];
    for await (const frame of callerAt(1).stream('SubscribeToTask', { id }, 0)) frames.push(frame);
    return frames;
  }

  const statesOf = (frames: Frame[]): string[] =>
    frames.flatMap(({ data }) => (data.result?.statusUpdate?.status.state as string | undefined) ?? []);
  const ONE_RUN = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];

  async function inDatabase(statement: string): Promise<void> {
    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      await client.query(statement);
    } finally {
      await client.end();
    }
  }

  /** Tasks are accepted and none continues until this has been done: the one worker is asleep. */
  async function whileNothingRuns<T>(act: () => Promise<T>): Promise<T> {
    stack.workers[0]!.signal('SIGSTOP');
    try {
      return await act();
    } finally {
      stack.workers[0]!.signal('SIGCONT');
    }
  }

  describe.each(VERSIONS)('a message that is sent again in %s', (version) => {
    const { send, stream, message, atOnce, task, artifact, completed, asking } = GENERATIONS[version];
    const blocking = (api: number, params: object): Promise<RpcAnswer> =>
      callerAt(api, version).call(send, params);
    const twice = (params: object): Promise<RpcAnswer[]> =>
      Promise.all([0, 1].map((api) => blocking(api, params)));

    it('is answered with the task that the first one has made, at work or ended', async () => {
      const contextId = randomUUID();
      const params = { message: message({ contextId, echo: { chunks: 3, delayMs: 50 } }) };
      const [first, second] = await twice(params);
      const later = await blocking(1, params);
      expect(task(first!.result).status.state).toBe(completed);
      expect(second).toEqual(first);
      expect(later).toEqual(first);
      expect(await tasksIn(contextId)).toHaveLength(1);
      expect(statesOf(await logOf(task(first!.result).id))).toEqual(ONE_RUN);
    });

    it('makes one task, however many come at once, on both APIs', async () => {
      const contextId = randomUUID();
      const params = { message: message({ contextId, echo: { delayMs: 200 } }) };
      const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => blocking(i % 2, params)));
      expect(new Set(answers.map(({ result }) => task(result).id as string)).size).toBe(1);
      expect(answers.map(({ result }) => task(result).status.state as string)).toEqual(
        Array(50).fill(completed),
      );
      const tasks = await tasksIn(contextId);
      expect(tasks).toHaveLength(1);
      expect(statesOf(await logOf(tasks[0].id as string))).toEqual(ONE_RUN);
    });

    it('is streamed from where the task is', async () => {
      const CHUNKS = 20;
      hold.hold();
      const params = { message: message({ text: times(CHUNKS, 'x') }) };
      const read = async (api: number, at: number, then: () => Promise<void>): Promise<Frame[]> => {
        const frames: Frame[] = [];
        let done: Promise<void> | undefined;
        for await (const frame of callerAt(api, version, 'pacer').stream(stream, params)) {
          frames.push(frame);
          if (frames.length === at) done = then();
        }
        await done;
        return frames;
      };
      let second: Frame[] = [];
      // The agent stops behind its first chunk, until the second caller has the task.
      const first = await read(0, 3, async () => {
        second = await read(1, 1, async () => hold.release());
      });
      const snapshot = task(second[0]!.data.result);
      expect(snapshot.id).toBe(task(first[0]!.data.result).id);
      expect(first.map(({ id }) => id)).toEqual(Array.from({ length: CHUNKS + 3 }, (_, i) => i + 1));
      expect(second[0]!.id).toBe(3);
      expect(second.slice(1)).toEqual(first.slice(second[0]!.id));
      const chunks = second.slice(1).flatMap(({ data }) => artifact(data.result)?.parts ?? []) as object[];
      expect([...snapshot.artifacts[0].parts, ...chunks]).toHaveLength(CHUNKS);
      const late: Frame[] = [];
      for await (const frame of callerAt(1, version, 'pacer').stream(stream, params)) late.push(frame);
      expect(late.map(({ data }) => task(data.result)?.status.state as string)).toEqual([completed]);
    });

    it('is answered at once where the caller does not wait', async () => {
      const params = { message: message({ echo: {} }), configuration: atOnce };
      const [first, second] = await whileNothingRuns(() => twice(params));
      for (const { result } of [first!, second!]) expect(task(result).status.state).not.toBe(completed);
      expect(task(second!.result).id).toBe(task(first!.result).id);
      // Another configuration of the answer does not make it another message.
      const waited = await blocking(0, { ...params, configuration: undefined });
      expect(task(waited.result)).toMatchObject({ id: task(first!.result).id, status: { state: completed } });
      expect(task((await blocking(1, params)).result).status.state).toBe(completed);
    });

    it('is a new one with another id, text, context, agent or tenant', async () => {
      const said = { messageId: randomUUID(), contextId: randomUUID() };
      const ids = [
        await blocking(0, { message: message(said) }),
        await blocking(0, { message: message({ ...said, text: 'hello!' }) }),
        await blocking(0, { message: message({ ...said, contextId: randomUUID() }) }),
        await blocking(0, { message: message({ messageId: said.messageId }) }),
        await blocking(0, { message: message({ contextId: said.contextId }) }),
        await blocking(0, { message: message(said), metadata: { a: 1 } }),
        await callerAt(0, version, 'echo', stranger).call(send, { message: message(said) }),
      ].map(({ result }) => task(result).id as string);
      expect(new Set(ids).size).toBe(ids.length);
      const index = await callerAt(0, version, 'index').call(send, { message: message(said) });
      expect(index.error).toBeUndefined();
      expect(JSON.stringify(index.result)).not.toContain(ids[0]);
    });

    it('is one turn when it answers a task that asks, however often it comes', async () => {
      const asked = task((await blocking(0, { message: message({ echo: { askInput: true } }) })).result);
      expect(asked.status.state).toBe(asking);
      const params = {
        message: message({ text: 'yes', taskId: asked.id as string, echo: { delayMs: 100 } }),
      };
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => blocking(i % 2, params)));
      answers.push(await blocking(1, params));
      for (const { result } of answers) {
        expect(task(result)).toMatchObject({ id: asked.id, status: { state: completed } });
      }
      const log = await logOf(asked.id as string);
      expect(statesOf(log).filter((state) => state === 'TASK_STATE_SUBMITTED')).toHaveLength(1);
      const other = { message: message({ text: 'no', taskId: asked.id as string }) };
      expect((await blocking(0, other)).error?.code).toBe(-32004);
    });

    it('is refused again, and makes a task when nothing is wrong any more', async () => {
      const said = { messageId: randomUUID(), contextId: randomUUID() };
      const taskId = randomUUID();
      for (const answer of await twice({ message: message({ ...said, taskId }) })) {
        expect(answer.error?.code).toBe(-32001);
      }
      expect(task((await blocking(0, { message: message(said) })).result).status.state).toBe(completed);
    });
  });

  describe('a message that is sent again', () => {
    const { message } = GENERATIONS['1.0'];
    const send = (params: object, api = 0): Promise<RpcAnswer> => callerAt(api).call('SendMessage', params);

    it('is the same in both generations of the protocol', async () => {
      const messageId = randomUUID();
      const first = await send({ message: message({ messageId }) });
      const legacy = GENERATIONS['0.3'];
      const second = await callerAt(1, '0.3').call(legacy.send, { message: legacy.message({ messageId }) });
      expect(second.result!.id).toBe(first.result!.task.id);
    });

    it('gets the bare message that the agent has replied with', async () => {
      const params = { message: message({ text: 'who is there?' }) };
      const ask = (api: number) => callerAt(api, '1.0', 'greeter').call('SendMessage', params);
      const first = await ask(0);
      expect(first.result).toHaveProperty('message.messageId');
      expect(await ask(1)).toEqual(first);
    });

    it('gets the error that the agent has thrown, of the same task', async () => {
      const params = { message: message({ echo: { fail: 'throw' } }) };
      const first = await send(params);
      expect(first.error?.code).toBe(-32006);
      expect(await send(params, 1)).toEqual(first);
    });

    it('after its API was killed while it answered is answered by the other one', async () => {
      const contextId = randomUUID();
      const params = { message: message({ contextId, echo: { chunks: 3 } }) };
      const lost = whileNothingRuns(async () => {
        const answer = send(params).then(
          () => 'answered',
          () => 'lost',
        );
        await until(async () => (await tasksIn(contextId)).length > 0);
        await stack.apis[0]!.kill();
        return answer;
      });
      expect(await lost).toBe('lost');
      const { result } = await send(params, 1);
      expect(result!.task.status.state).toBe('TASK_STATE_COMPLETED');
      const tasks = await tasksIn(contextId);
      expect(tasks.map(({ id }) => id as string)).toEqual([result!.task.id]);
      expect(statesOf(await logOf(tasks[0].id as string))).toEqual(ONE_RUN);
      stack.apis[0] = await stack.addApi();
      stack.apis.pop();
    });

    it('is a new one when its time is over, or its task was deleted', async () => {
      const params = { message: message({}) };
      const first = (await send(params)).result!.task.id as string;
      await inDatabase(
        `UPDATE message_keys SET expires_at = now() - interval '1 second' WHERE task_id = '${first}'`,
      );
      const second = (await send(params)).result!.task.id as string;
      expect(second).not.toBe(first);
      expect((await send(params)).result!.task.id).toBe(second);
      await inDatabase(`DELETE FROM tasks WHERE id = '${second}'`);
      const third = (await send(params)).result!.task.id as string;
      expect([first, second]).not.toContain(third);
      expect((await send(params, 1)).result!.task.id).toBe(third);
    });
  });

  describe('an Idempotency-Key', () => {
    const { message } = GENERATIONS['1.0'];
    const under = (key: string, said: Said, api = 0, agent = 'echo'): Promise<RpcAnswer> =>
      callerAt(api, '1.0', agent)
        .with({ 'idempotency-key': key })
        .call('SendMessage', { message: message(said) });

    it('makes one task of messages that differ in their id only', async () => {
      const [key, contextId] = [randomUUID(), randomUUID()];
      const sends = Array.from({ length: 20 }, (_, i) =>
        under(i % 4 < 2 ? key : `"${key}"`, { contextId }, i % 2),
      );
      const ids = (await Promise.all(sends)).map(({ result }) => result!.task.id as string);
      expect(new Set(ids).size).toBe(1);
      expect(await tasksIn(contextId)).toHaveLength(1);
      const other = await under(randomUUID(), { contextId });
      expect(ids).not.toContain(other.result!.task.id);
    });

    it('is refused with another message, which makes no task', async () => {
      const [key, contextId] = [randomUUID(), randomUUID()];
      const said = { contextId, messageId: randomUUID() };
      await under(key, said);
      const { error } = await under(key, { ...said, text: 'other' }, 1);
      expect(error).toMatchObject({
        code: -32602,
        message: expect.stringContaining('Idempotency-Key') as string,
      });
      expect(error!.message).toContain(key);
      expect(JSON.stringify(error!.data)).toContain('"field":"Idempotency-Key"');
      expect(await tasksIn(contextId)).toHaveLength(1);
      expect((await under(key, { ...said, text: 'other' }, 0, 'index')).error).toBeUndefined();
    });

    it('streams the task that it has made', async () => {
      const caller = callerAt(0).with({ 'idempotency-key': randomUUID() });
      const read = async (): Promise<Frame[]> => {
        const frames: Frame[] = [];
        const params = { message: message({}) };
        for await (const frame of caller.stream('SendStreamingMessage', params)) frames.push(frame);
        return frames;
      };
      const first = await read();
      const second = await read();
      expect(second.map(({ id }) => id)).toEqual([first.at(-1)!.id]);
      expect(second[0]!.data.result!.task.id).toBe(first[0]!.data.result!.task.id);
    });

    it('answers a task that asks once', async () => {
      const asked = (await under(randomUUID(), { echo: { askInput: true } })).result!.task.id as string;
      const key = randomUUID();
      const answers = await Promise.all([0, 1].map((api) => under(key, { taskId: asked, text: 'yes' }, api)));
      for (const { result } of answers) {
        expect(result!.task).toMatchObject({ id: asked, status: { state: 'TASK_STATE_COMPLETED' } });
      }
      expect((await under(key, { taskId: asked, text: 'no' })).error?.code).toBe(-32602);
    });

    it('holds where callers choose the ids of their tasks', async () => {
      const [key, id] = [randomUUID(), randomUUID()];
      const caller = new RawCaller(`${stack.apis[0]!.url}/v1/agents/echo/a2a`, token, '');
      const ask = (text: string, under?: string, to = id): Promise<RpcAnswer> =>
        (under === undefined ? caller : caller.with({ 'idempotency-key': under })).call('tasks/send', {
          id: to,
          message: { role: 'user', parts: [{ type: 'text', text }] },
        });
      const first = (await ask('one', key)).result!.id as string;
      const second = (await ask('two', randomUUID())).result!.id as string;
      expect(second).not.toBe(first);
      // By the contract alone this would be a third turn.
      expect((await ask('one', key)).result!.id).toBe(first);
      expect((await ask('one')).result!.id).not.toBe(first);
      expect((await ask('one', key, randomUUID())).error?.code).toBe(-32602);
    });
  });
});
