import { TaskState } from '@a2a-js/sdk';
import { InMemoryTaskStore, DefaultRequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { defineAgent } from './define-agent.js';
import { runExecutor } from './run-executor.js';

const { TASK_STATE_COMPLETED: COMPLETED } = TaskState;

describe('an agent from one function', () => {
  it('answers with the text that the function returns', async () => {
    const hello = defineAgent(({ text }) => `Hello, ${text}!`);
    const { text, events } = await runExecutor(hello, 'Ada');
    expect(text).toBe('Hello, Ada!');
    expect(events.at(-1)).toMatchObject({ kind: 'statusUpdate', data: { status: { state: COMPLETED } } });
  });

  it('streams its answer, and ends it with what the function returns', async () => {
    const agent = defineAgent(({ stream }) => {
      stream('one ');
      stream('two ');
      return 'three';
    });
    const { text, events } = await runExecutor(agent, 'count');
    expect(text).toBe('one two three');
    const chunks = events.flatMap(({ kind, data }) => (kind === 'artifactUpdate' ? [data] : []));
    expect(chunks.map(({ append, lastChunk }) => [append, lastChunk])).toEqual([
      [false, false],
      [true, false],
      [true, true],
    ]);
  });

  it('answers with data', async () => {
    const { events } = await runExecutor(
      defineAgent(() => ({ text: 'found', data: { hits: 2 } })),
      'find',
    );
    expect(events.at(-1)).toMatchObject({
      data: {
        status: {
          message: { parts: [{ content: { value: 'found' } }, { content: { value: { hits: 2 } } }] },
        },
      },
    });
  });

  it('asks, and its steps are those of the task', async () => {
    const agent = defineAgent(async ({ step, ask }) => {
      const name = await ask('name', 'Who are you?');
      return step('greet', () => `Hello, ${name}!`);
    });
    expect((await runExecutor(agent, 'hi', { answers: { name: 'Ada' } })).text).toBe('Hello, Ada!');
  });

  it('fails with the error of the function', async () => {
    const agent = defineAgent(() => {
      throw new RangeError('no');
    });
    await expect(runExecutor(agent, 'hi')).rejects.toThrow(RangeError);
  });

  it('runs on the server of the SDK, and stops when its task is canceled', async () => {
    const agent = defineAgent(
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    );
    const handler = new DefaultRequestHandler({} as never, new InMemoryTaskStore(), agent);
    const context = new ServerCallContext();
    const parts = [{ content: { $case: 'text', value: 'wait' } }];
    const message = {
      messageId: 'm',
      role: 1,
      parts,
      contextId: '',
      taskId: '',
      extensions: [],
      referenceTaskIds: [],
    };
    const configuration = { returnImmediately: true, acceptedOutputModes: [] };
    const task = await handler.sendMessage({ tenant: '', message, configuration } as never, context);
    const canceled = await handler.cancelTask(
      { tenant: '', id: (task as { id: string }).id } as never,
      context,
    );
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  });
});
