import { type SendMessageRequest, type StreamItem, Task } from '@baton/a2a';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SendOperations } from './send-operations.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const request = (): SendMessageRequest => ({ message: {} }) as SendMessageRequest;

/** A stream of which only the reader and the operation have the task. */
function streamOf(sent: SendMessageRequest): { items: AsyncGenerator<StreamItem[]>; task: WeakRef<Task> } {
  let task: Task | undefined = Task.fromJSON({
    id: 'task',
    contextId: 'context',
    status: { state: 'TASK_STATE_WORKING' },
    history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'long' }] }],
  });
  const known = new WeakRef(task);
  const finder = {
    withHistory: (_: unknown, found: Task) => Promise.resolve(found),
    follow: async function* (): AsyncGenerator<StreamItem[]> {
      yield [{ sequence: 2, payload: { $case: 'task', value: Task.fromJSON({}) } }];
    },
  };
  const route = (): Promise<unknown> => {
    const snapshot = { task, sequence: 1 };
    task = undefined;
    return Promise.resolve({ snapshot, watch: {} });
  };
  const none = {} as never;
  const operations = new SendOperations({ route } as never, none, finder as never, none, none);
  const call = { rules: { streamEnds: 'with-turn' } } as never;
  const items = operations.sendStreamingMessage(call, sent, new AbortController().signal);
  return { items, task: known };
}

/** Takes the items out of the array, as `EventStream` does. */
async function sequencesOf(items: AsyncGenerator<StreamItem[]>): Promise<number[]> {
  const { value } = (await items.next()) as { value: StreamItem[] };
  return value.splice(0).map(({ sequence }) => sequence);
}

describe('the stream of a message', () => {
  it('keeps neither the message, which is stored, nor the task that its reader has taken', async () => {
    const sent = request();
    const { items, task } = streamOf(sent);
    expect(await sequencesOf(items)).toEqual([1]);
    expect(sent.message).toBeUndefined();
    expect(await sequencesOf(items)).toEqual([2]);
    // A WeakRef keeps its object until the turn of the event loop is over.
    await new Promise(setImmediate);
    collectGarbage();
    expect(task.deref()).toBeUndefined();
  });
});
