import { EVENT_KIND, USAGE } from '../../agent-events.js';
import { ProtocolError } from '../../errors.js';
import { type Part, TaskState } from '../../model.js';
import {
  artifactEvent,
  sampleArtifact,
  sampleMessage,
  statusEvent,
  textPart,
} from '../../testing/samples.js';
import {
  CONTEXT,
  decode,
  errorOf,
  framesOf,
  opening,
  replyMessage,
  resultOf,
  taskIn,
  wireOf,
} from '../../testing/profile.js';
import { rulesFor } from '../profile.js';
import { assertParts } from '../part-rule.js';
import { ARBITER_PROFILE as arbiter } from './index.js';

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

describe('arbiter: what is accepted', () => {
  it.each([
    [undefined, '0.3'],
    ['', '0.3'],
    ['1', '1.0'],
    ['1.0', '1.0'],
  ])('A-10 takes A2A-Version %p', (requested, version) => {
    expect(arbiter.resolveVersion(requested, 'message/send')).toBe(version);
  });

  it.each(['0.3', '0.3.0', '1.0.0', '1.1', '2', 'v1', 'latest'])(
    'A-11 refuses A2A-Version %p with -32007 before the body, naming -32009',
    (requested) => {
      const error = errorOf(() => arbiter.resolveVersion(requested, 'message/send'));
      const { code, http, data: detail } = wireOf(arbiter, error);
      expect({ code, http }).toEqual({ code: -32007, http: 200 });
      expect(detail).toMatchObject({ metadata: { requestedVersion: requested, a2aCode: '-32009' } });
      expect(arbiter.versionCheck).toBe('before-body');
    },
  );

  it('A-14 needs a messageId', () => {
    const message = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
    expect(errorOf(() => decode(arbiter, 'message/send', { message })).kind).toBe('invalid-params');
  });

  it.each([
    [{ kind: 'file', file: { uri: 'https://x' } }],
    [{ kind: 'file', file: {} }],
    [{ kind: 'data', data: { a: 1 } }],
    [{ kind: 'video' }],
    [{ type: 'data', data: {} }],
  ])('A-17 refuses the part %j with -32005', (part) => {
    const message = { role: 'user', messageId: 'm', parts: [{ kind: 'text', text: 'x' }, part] };
    for (const method of ['message/send', 'message/stream']) {
      const error = errorOf(() => decode(arbiter, method, { message }));
      expect(wireOf(arbiter, error)).toMatchObject({ code: -32005, http: 200 });
      expect(error.message).toContain('message.parts[1]');
    }
  });

  it('A-17 refuses a file in the 1.0 form as well', () => {
    const message = { role: 'ROLE_USER', messageId: 'm', parts: [{ url: 'https://x' }] };
    const { request } = decode(arbiter, 'SendMessage', { message }) as { request: { message: never } };
    const agent = { definition: { inputModes: ['*/*'] } } as never;
    expect(errorOf(() => assertParts(arbiter.parts, request.message, agent)).kind).toBe(
      'content-type-not-supported',
    );
  });

  it.each(['set', 'get', 'list', 'delete'])('A-45 refuses push config %s whatever its params', (verb) => {
    const { operation } = decode(arbiter, `tasks/pushNotificationConfig/${verb}`, {});
    expect(operation).toBe('pushNotificationConfig');
    const { code, message } = wireOf(arbiter, new ProtocolError('push-not-supported', 'anything'));
    expect(code).toBe(-32004);
    expect(message).toBe('Push notifications are not supported: follow the task with tasks/resubscribe');
  });

  it('A-25 answers an unknown agent with -32001 and HTTP 200', () => {
    const error = new ProtocolError('agent-not-found', 'Agent not found: x');
    expect(wireOf(arbiter, error)).toMatchObject({ code: -32001, http: 200 });
  });

  it('A-13 A-41 always answers with the task, and replays a log', () => {
    expect(rulesFor(arbiter, arbiter.codecFor('message/send')!)).toMatchObject({
      reply: 'task',
      agentThrew: 'error',
      subscribe: 'replay',
      taskScope: 'agent',
    });
  });
});

describe('arbiter: a task', () => {
  it('A-19 A-20 A-21 completed has its reply, its history and its counts', () => {
    const artifacts = [sampleArtifact({ parts: [textPart('Hel'), textPart('lo')] })];
    const metadata = { source: 'me', [USAGE]: { inputTokens: 142, outputTokens: 218 } };
    expect(resultOf(arbiter, 'message/send', taskIn(COMPLETED, { artifacts, metadata }))).toEqual({
      kind: 'task',
      id: 'task-1',
      contextId: 'context-1',
      status: { state: 'completed', message: reply('Hello'), timestamp: at },
      history: [
        {
          kind: 'message',
          messageId: 'm-1',
          role: 'user',
          parts: [{ kind: 'text', text: 'hi' }],
          ...ids,
        },
        reply('Hello'),
      ],
      artifacts: [
        { artifactId: 'task-1-text-0', name: 'response', parts: [{ kind: 'text', text: 'Hello' }] },
      ],
      metadata: {
        source: 'me',
        'x-arbiter.agent_id': 'index',
        'x-arbiter.input_tokens': 142,
        'x-arbiter.output_tokens': 218,
      },
    });
  });

  it('A-19 A-20 takes the agent’s own message as the reply, and leaves out what it said on the way', () => {
    const said = replyMessage('Done');
    const history = [sampleMessage(), replyMessage('Searching…', { messageId: 'm-x' }), said];
    const { status, history: told } = resultOf(arbiter, 'tasks/get', taskIn(COMPLETED, { history }, said));
    expect(status).toMatchObject({ message: reply('Done') });
    expect(told).toMatchObject([{ role: 'user' }, reply('Done')]);
    expect(told).toHaveLength(2);
  });

  it('A-19 has a message even of a reply without text', () => {
    expect(resultOf(arbiter, 'tasks/get', taskIn(COMPLETED)).status).toMatchObject({ message: reply('') });
  });

  it('A-21 counts no tokens for an agent that reports none, or nonsense', () => {
    for (const usage of [undefined, 'x', null, { inputTokens: -1, outputTokens: 'x' }]) {
      expect(
        resultOf(arbiter, 'tasks/get', taskIn(COMPLETED, { metadata: { [USAGE]: usage } })).metadata,
      ).toEqual({
        'x-arbiter.agent_id': 'index',
        'x-arbiter.input_tokens': 0,
        'x-arbiter.output_tokens': 0,
      });
    }
  });

  it('A-34 has neither message nor history while it is at work', () => {
    const task = taskIn(TaskState.TASK_STATE_WORKING, {}, replyMessage('Searching…'));
    const json = resultOf(arbiter, 'tasks/get', task);
    expect(json.status).toEqual({ state: 'working', timestamp: at });
    expect(json).not.toHaveProperty('history');
  });

  it('A-17 that asks for input is returned as it is', () => {
    const question = replyMessage('Which one?');
    const json = resultOf(arbiter, 'message/send', taskIn(TaskState.TASK_STATE_INPUT_REQUIRED, {}, question));
    expect(json).toMatchObject({
      status: { state: 'input-required', message: { messageId: 'm-2' } },
      history: [{ messageId: 'm-1' }, { messageId: 'm-2' }],
    });
  });

  it('P-7 gives as much history as was asked for', () => {
    const task = taskIn(COMPLETED, { artifacts: [sampleArtifact()] });
    const ask = (historyLength: number) =>
      resultOf(arbiter, 'tasks/get', task, { ...CONTEXT, historyLength });
    expect(ask(0)).not.toHaveProperty('history');
    expect(ask(1).history).toMatchObject([{ messageId: 'task-1-r' }]);
  });

  it('is the same under the 1.0 names', () => {
    const codec = arbiter.codecFor('GetTask')!;
    expect(
      codec.encodeResult('getTask', taskIn(COMPLETED, { artifacts: [sampleArtifact()] }), CONTEXT),
    ).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED', message: { messageId: 'task-1-r' } },
      metadata: { 'x-arbiter.agent_id': 'index' },
    });
  });
});

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

  it('A-30 marks whatever else an agent says', () => {
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

  it('A-41 goes on after the last event that was read, exactly as without the break', () => {
    const log = [opening(), working, chunk('Hel', false), chunk('lo', true), completed];
    const whole = framesOf(arbiter, 'tasks/resubscribe', log);
    for (let after = 1; after < log.length; after++) {
      const rest = framesOf(arbiter, 'tasks/resubscribe', log, { ...CONTEXT, after });
      expect(rest).toEqual(whole.slice(whole.length - rest.length));
      const read = whole.filter((frame) => !rest.includes(frame)).slice(0, whole.length - rest.length);
      expect(read.every(({ sequence }) => sequence <= after)).toBe(true);
    }
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

describe('arbiter: a card', () => {
  it('A-47 is Arbiter’s', () => {
    const definition = {
      name: 'Echo',
      description: 'Says it again',
      version: '2.0',
      runtime: 'echo',
      config: {},
      skills: [],
      inputModes: ['*/*'],
      outputModes: [],
      extensions: [],
    };
    const card = arbiter.card?.encode(
      { id: 'id-1', slug: 'echo', origin: 'builtin', definition },
      'https://h/',
    );
    expect(card).toMatchObject({
      protocolVersion: '0.3.0',
      name: 'Echo',
      description: 'Says it again',
      url: 'https://h/v1/a2a/agents/id-1',
      version: '2.0',
      preferredTransport: 'JSONRPC',
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain', 'application/json'],
      capabilities: { streaming: true, pushNotifications: false },
      skills: [{ id: 'chat' }, { id: 'echo' }],
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      security: [{ bearer: [] }],
    });
  });
});
