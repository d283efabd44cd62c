import { randomUUID } from 'node:crypto';
import { GENERATIONS, type Said } from '../support/generations.js';
import { DRIVERS } from '../support/index.js';
import { type Frame, RawCaller, type RpcAnswer } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';

let stack: Stack;
let token: string;

beforeAll(async () => {
  stack = await Stack.start({ driver: DRIVERS[0]!, apis: 2, workers: 1 });
  token = (await stack.createTenant()).token;
});
afterAll(() => stack.stop());

const callerAt = (api: number, agent = 'echo'): RawCaller => new RawCaller(stack.url(api, agent), token);

/** How many tasks there are in a context. */
async function tasksIn(contextId: string): Promise<number> {
  const { result } = await callerAt(1).call('ListTasks', { contextId });
  return result!.totalSize as number;
}

describe('an Idempotency-Key', () => {
  const { message } = GENERATIONS['1.0'];
  const under = (key: string, said: Said, api = 0, agent = 'echo'): Promise<RpcAnswer> =>
    callerAt(api, agent)
      .with({ 'idempotency-key': key })
      .call('SendMessage', { message: message(said) });

  it('makes one task of messages that differ in their id only', async () => {
    const [key, contextId] = [randomUUID(), randomUUID()];
    const sends = Array.from({ length: 20 }, (_, i) =>
      under(i % 4 < 2 ? key : `"${key}"`, { contextId }, i % 2),
    );
    const ids = (await Promise.all(sends)).map(({ result }) => result!.task.id as string);
    expect(new Set(ids).size).toBe(1);
    expect(await tasksIn(contextId)).toBe(1);
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
    expect(await tasksIn(contextId)).toBe(1);
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
