import { EVENT_KIND } from '../reply.js';
import { type Part, TaskState } from '../model.js';
import {
  artifactEvent,
  sampleArtifact,
  statusEvent,
  textPart,
} from '../../../../test/support/a2a/samples.js';
import { CONTEXT, framesOf, opening, replyMessage, taskIn } from '../../../../test/support/a2a/profile.js';
import { ARBITER_PROFILE as arbiter } from './arbiter.js';

const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const working = statusEvent(TaskState.TASK_STATE_WORKING);
const completed = statusEvent(COMPLETED);
const chunk = (text: string, append: boolean, lastChunk = false) =>
  artifactEvent(
    sampleArtifact({ artifactId: 'echo-1', name: 'echo', parts: [textPart(text)] }),
    append,
    lastChunk,
  );
const data = (value: unknown): Part => ({ ...textPart(''), content: { $case: 'data', value } });
const file: Part = { ...textPart(''), content: { $case: 'url', value: 'https://x/f' }, filename: 'f.txt' };

const at = '2026-01-31T12:00:00.000Z';
const ids = { taskId: 'task-1', contextId: 'context-1' };
const reply = (text: string) => ({
  kind: 'message',
  messageId: 'task-1-r',
  role: 'agent',
  parts: [{ kind: 'text', text }],
  ...ids,
});
const textFrame = (text: string, flags: object) => ({
  kind: 'artifact-update',
  ...ids,
  artifact: { artifactId: 'task-1-text-0', name: 'response', parts: [{ kind: 'text', text }] },
  lastChunk: false,
  ...flags,
});
const workingFrame = {
  kind: 'status-update',
  ...ids,
  status: { state: 'working', timestamp: at },
  final: false,
};
const stream = (...log: Parameters<typeof framesOf>[2]) => framesOf(arbiter, 'message/stream', log);
const results = (...log: Parameters<typeof framesOf>[2]) => stream(...log).map(({ result }) => result);

describe('arbiter: a stream', () => {
  it('A-26 writes envelopes under event: message', () => {
    for (const method of ['message/stream', 'tasks/resubscribe', 'SendStreamingMessage']) {
      expect(arbiter.codecFor(method)?.framing).toMatchObject({ event: 'message', enveloped: true });
    }
  });

  it('A-27 A-28 A-29 A-31 goes from working over the text to the final status', () => {
    expect(stream(opening(), working, chunk('Hel', false), chunk('lo', true, true), completed)).toEqual([
      { sequence: 1, result: workingFrame },
      { sequence: 3, result: textFrame('Hel', { append: false }) },
      { sequence: 4, result: textFrame('lo', { append: true }) },
      { sequence: 4, result: textFrame('', { append: true, lastChunk: true }) },
      {
        sequence: 5,
        result: {
          kind: 'status-update',
          ...ids,
          status: { state: 'completed', message: reply('Hello'), timestamp: at },
          final: true,
        },
      },
    ]);
  });

  it('A-28 A-31 sends a reply that is a message alone as text too', () => {
    expect(results(opening(), working, statusEvent(COMPLETED, replyMessage('Hello')))).toMatchObject([
      workingFrame,
      textFrame('Hello', { append: false, lastChunk: true }),
      { status: { message: reply('Hello') }, final: true },
    ]);
  });

  it('A-28 joins the text of several artifacts, and sends it all anew when one is replaced', () => {
    const other = artifactEvent(sampleArtifact({ artifactId: 'b', parts: [textPart('B')] }));
    expect(results(opening(), chunk('x', false), other, chunk('A', false), completed).slice(1)).toMatchObject(
      [
        textFrame('x', { append: false }),
        textFrame('B', { append: true }),
        textFrame('AB', { append: false }),
        textFrame('', { append: true, lastChunk: true }),
        { status: { message: reply('AB') } },
      ],
    );
  });

  it('A-17 ends with the question of an interrupted task', () => {
    const question = statusEvent(TaskState.TASK_STATE_INPUT_REQUIRED, replyMessage('Which?'));
    expect(results(opening(), question)).toMatchObject([
      workingFrame,
      { status: { state: 'input-required', message: { messageId: 'm-2' } }, final: true },
    ]);
  });

  it('A-28 begins the text of the next turn anew', () => {
    const question = statusEvent(TaskState.TASK_STATE_INPUT_REQUIRED);
    const log = [opening(), chunk('one', false), question, statusEvent(TaskState.TASK_STATE_SUBMITTED)];
    expect(results(...log, chunk('two', true), completed).slice(4)).toMatchObject([
      textFrame('two', { append: false }),
      textFrame('', { append: true, lastChunk: true }),
      { status: { message: reply('two') } },
    ]);
  });

  it('A-30 marks a tool call', () => {
    const artifact = sampleArtifact({
      parts: [data({ tool: 'search', ok: true, took: 7 })],
      metadata: { [EVENT_KIND]: 'tool-call' },
    });
    expect(results(opening(), artifactEvent(artifact))[1]).toEqual({
      kind: 'artifact-update',
      ...ids,
      artifact: {
        artifactId: 'a-1',
        parts: [{ kind: 'data', data: { tool: 'search', ok: true } }],
        metadata: { 'x-arbiter.tool_call': true },
      },
      append: false,
      lastChunk: false,
    });
  });

  it('A-30 names a file', () => {
    const artifact = sampleArtifact({ name: 'files', parts: [textPart('see'), file] });
    expect(results(opening(), artifactEvent(artifact)).slice(1)).toMatchObject([
      textFrame('see', { append: false }),
      {
        artifact: {
          artifactId: 'a-1',
          name: 'f.txt',
          parts: [{ kind: 'file', file: { uri: 'https://x/f' } }],
        },
      },
    ]);
  });

  it('A-30 A-32 has the reply of a delegated agent as data, never as text', () => {
    const artifact = sampleArtifact({
      parts: [data({ agent: 'other', depth: 1, content: 'secret' }), textPart('secret')],
      metadata: { [EVENT_KIND]: 'agent-reply' },
    });
    const frames = results(opening(), artifactEvent(artifact), completed);
    expect(frames[1]).toMatchObject({
      artifact: { parts: [{ kind: 'data', data: { agent: 'other', depth: 1, content: 'secret' } }] },
    });
    expect(frames[2]).toMatchObject({ status: { message: reply('') }, final: true });
  });

  it('A-30 marks all other output of an agent', () => {
    const own = sampleArtifact({ metadata: { [EVENT_KIND]: 'plan', a: 1 } });
    const progress = statusEvent(TaskState.TASK_STATE_WORKING, replyMessage('Searching…'));
    const plain = artifactEvent(sampleArtifact({ parts: [data({ a: 1 })] }));
    expect(results(opening(), artifactEvent(own), plain, progress).slice(1)).toMatchObject([
      { artifact: { parts: [{ text: 'chunk' }], metadata: { a: 1, 'x-arbiter.plan': true } } },
      { artifact: { parts: [{ data: { a: 1 } }], metadata: { 'x-arbiter.data': true } } },
      { artifact: { parts: [{ data: { message: 'Searching…' } }], metadata: { 'x-arbiter.status': true } } },
    ]);
  });

  it('A-40 ends with canceled and final when the task is canceled', () => {
    const canceled = statusEvent(TaskState.TASK_STATE_CANCELED);
    expect(results(opening(), working, chunk('Hel', false), canceled).slice(2)).toEqual([
      textFrame('', { append: true, lastChunk: true }),
      { kind: 'status-update', ...ids, status: { state: 'canceled', timestamp: at }, final: true },
    ]);
  });

  it.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 3],
  ])('A-41 goes on after event %i, exactly as without the break', (after, frames) => {
    const log = [opening(), working, chunk('Hel', false), chunk('lo', true), completed];
    const rest = framesOf(arbiter, 'tasks/resubscribe', log, { ...CONTEXT, after });
    expect(rest).toEqual(framesOf(arbiter, 'tasks/resubscribe', log).slice(frames));
    expect(rest).toHaveLength(5 - frames);
  });

  it('A-43 of a task that has ended is one final status', () => {
    const value = taskIn(COMPLETED, { artifacts: [sampleArtifact()] });
    expect(framesOf(arbiter, 'tasks/resubscribe', [{ $case: 'task', value }])).toEqual([
      {
        sequence: 1,
        result: {
          kind: 'status-update',
          ...ids,
          status: { state: 'completed', message: reply('chunk'), timestamp: at },
          final: true,
        },
      },
    ]);
  });
});
