import { type AgentOutput, jsonPart, plainTextPart, type Turn } from '../../agent-runtime.js';
import { type Message, Role, TaskState } from '@baton/a2a';
import {
  collect,
  firstTurn,
  summary,
  turnWith,
  userMessage,
} from '../../../../../test/support/agents/turns.js';
import { EchoRuntime } from './echo-runtime.js';

const runtime = new EchoRuntime();
const COMPLETED = { state: TaskState.TASK_STATE_COMPLETED };

const asking = (text: string, echo: unknown, fields: Partial<Message> = {}): Message =>
  userMessage(text, { ...fields, metadata: { echo } });

function run(turn: Turn, signal = new AbortController().signal): Promise<AgentOutput[]> {
  return collect(runtime.run(turn, signal));
}
const said = async (message: Message | string) => summary(await run(firstTurn(message)));

describe('echo', () => {
  it('answers with the parts it was sent as one artifact', async () => {
    const file = {
      content: { $case: 'raw' as const, value: Buffer.from('x') },
      metadata: { a: 1 },
      filename: 'x.bin',
      mediaType: 'application/octet-stream',
    };
    const parts = [plainTextPart('hi'), jsonPart({ a: [1] }), file];
    const [first, ...rest] = await run(firstTurn(userMessage(parts)));
    expect(first).toMatchObject({
      $case: 'artifactUpdate',
      value: { append: false, lastChunk: true, artifact: { artifactId: 'echo-1', name: 'echo', parts } },
    });
    expect(summary(rest)).toEqual([COMPLETED]);
  });

  it('sends as many chunks of one artifact as asked for', async () => {
    expect(await said(asking('hello', { chunks: 3, chunkBytes: 7 }))).toEqual([
      { artifact: 'echo-1', append: false, lastChunk: false, text: 'hellohe' },
      { artifact: 'echo-1', append: true, lastChunk: false, text: 'hellohe' },
      { artifact: 'echo-1', append: true, lastChunk: true, text: 'hellohe' },
      COMPLETED,
    ]);
  });

  it('waits before each chunk, and stops waiting when it is stopped', async () => {
    const started = performance.now();
    expect(await run(firstTurn(asking('x', { chunks: 3, delayMs: 20 })))).toHaveLength(4);
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);

    const stop = new AbortController();
    const outputs = runtime.run(firstTurn(asking('x', { delayMs: 600_000 })), stop.signal);
    const next = outputs.next();
    stop.abort('canceled');
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it('throws right away, or after the chunks that were asked for', async () => {
    const outputs = runtime.run(firstTurn(asking('x', { fail: 'throw' })), new AbortController().signal);
    await expect(outputs.next()).rejects.toThrow('asked the agent to throw');

    const later = runtime.run(
      firstTurn(asking('x', { fail: 'throw', chunks: 1 })),
      new AbortController().signal,
    );
    expect((await later.next()).value).toMatchObject({ $case: 'artifactUpdate' });
    await expect(later.next()).rejects.toThrow('asked the agent to throw');
  });

  it('fails when asked to', async () => {
    const state = TaskState.TASK_STATE_FAILED;
    expect(await said(asking('x', { fail: 'failed' }))).toMatchObject([{ state }]);
    expect(await said(asking('x', { fail: 'failed', chunks: 2 }))).toMatchObject([{}, {}, { state }]);
  });

  it('asks, and echoes the answer on whichever worker gets it', async () => {
    const question = asking('first', { askInput: true });
    const [asked] = await run(firstTurn(question));
    expect(summary([asked as AgentOutput])).toMatchObject([{ state: TaskState.TASK_STATE_INPUT_REQUIRED }]);

    const status = asked?.$case === 'statusUpdate' ? asked.value.status?.message : undefined;
    expect(status).toMatchObject({ role: Role.ROLE_AGENT, taskId: 'task-1' });
    // A caller may well ask the same again: it is an answer all the same.
    const answer = asking('second', { askInput: true }, { messageId: 'm-2' });
    // What the agent had said is no turn, however much it was.
    const history = [question, { ...(status as Message), messageId: 'm-0' }, status as Message, answer];
    expect(
      summary(await collect(new EchoRuntime().run(turnWith(history), new AbortController().signal))),
    ).toEqual([{ artifact: 'echo-2', append: false, lastChunk: true, text: 'second' }, COMPLETED]);
  });

  it.each([
    [{ chunks: 0 }, 'metadata.echo.chunks must be a whole number from 1 to 100000'],
    [{ chunks: 100_001 }, 'metadata.echo.chunks must be a whole number from 1 to 100000'],
    [{ chunks: '3' }, 'metadata.echo.chunks must be a whole number from 1 to 100000'],
    [{ delayMs: 1.5 }, 'metadata.echo.delayMs must be a whole number from 0 to 600000'],
    [{ chunkBytes: 2 ** 21 }, 'metadata.echo.chunkBytes must be a whole number from 1 to 1048576'],
    [{ fail: 'maybe' }, 'metadata.echo.fail must be "throw" or "failed"'],
    [{ askInput: 'yes' }, 'metadata.echo.askInput must be true or false'],
    [{ chunk: 3 }, 'metadata.echo.chunk is not one of chunks, delayMs, chunkBytes, fail, askInput'],
    ['loud', 'metadata.echo must be an object with any of chunks, delayMs, chunkBytes, fail, askInput'],
    [
      { chunks: 100_000, chunkBytes: 1024 * 1024 },
      'metadata.echo.chunks asks for a reply of more than 67108864 bytes',
    ],
  ])('fails for %j, naming the field and what is allowed', async (options, text) => {
    expect(await said(asking('x', options))).toEqual([{ state: TaskState.TASK_STATE_FAILED, text }]);
  });
});
