import { type SendMessageRequest, type StreamItem, Task } from '@baton/a2a';
import { SendOperations } from './send-operations.js';

const task = Task.fromJSON({
  id: 'task',
  contextId: 'context',
  status: { state: 'TASK_STATE_WORKING' },
  history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'long' }] }],
});
const working: StreamItem = {
  sequence: 2,
  payload: {
    $case: 'statusUpdate',
    value: { taskId: 'task', contextId: 'context', status: undefined, metadata: undefined },
  },
};

describe('the stream of a message', () => {
  it('keeps neither the message, which is stored, nor the task that has gone out', async () => {
    const request = { message: task.history[0] } as SendMessageRequest;
    const operations = new SendOperations(
      { route: () => Promise.resolve({ snapshot: { task, sequence: 1 }, watch: {} }) } as never,
      {} as never,
      {
        withHistory: () => Promise.resolve(task),
        follow: async function* () {
          yield [working];
        },
      } as never,
      {} as never,
      {} as never,
    );
    const items = operations.sendStreamingMessage(
      { rules: { streamEnds: 'with-turn' } } as never,
      request,
      new AbortController().signal,
    );
    const first = (await items.next()).value as StreamItem[];
    expect(first.map(({ sequence }) => sequence)).toEqual([1]);
    expect(request.message).toBeUndefined();
    expect((await items.next()).value).toEqual([working]);
    expect(first).toEqual([]);
  });
});
