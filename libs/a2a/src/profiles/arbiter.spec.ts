import { USAGE } from '../reply.js';
import { ProtocolError } from '../protocol-error.js';
import { type SendMessageRequest, TaskState } from '../model.js';
import { sampleArtifact, sampleMessage, textPart } from '../../../../test/support/a2a/samples.js';
import {
  CONTEXT,
  decode,
  errorOf,
  replyMessage,
  resultOf,
  taskIn,
  wireOf,
} from '../../../../test/support/a2a/profile.js';
import { assertParts, rulesFor } from './profile.js';
import { ARBITER_PROFILE as arbiter } from './arbiter.js';

const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const at = '2026-01-31T12:00:00.000Z';
const ids = { taskId: 'task-1', contextId: 'context-1' };
const reply = (text: string) => ({
  kind: 'message',
  messageId: 'task-1-r',
  role: 'agent',
  parts: [{ kind: 'text', text }],
  ...ids,
});

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
    const request = decode(arbiter, 'SendMessage', { message }).request as SendMessageRequest;
    const agent = { definition: { inputModes: ['*/*'] } } as never;
    expect(errorOf(() => assertParts(arbiter.parts, request.message, agent)).kind).toBe(
      'content-type-not-supported',
    );
  });

  it.each(['set', 'get', 'list', 'delete'])('A-45 refuses push config %s whatever its params', (verb) => {
    const { operation } = decode(arbiter, `tasks/pushNotificationConfig/${verb}`, {});
    expect(operation).toMatch(/TaskPushNotificationConfigs?$/);
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
    const { status, history: answered } = resultOf(
      arbiter,
      'tasks/get',
      taskIn(COMPLETED, { history }, said),
    );
    expect(status).toMatchObject({ message: reply('Done') });
    expect(answered).toMatchObject([{ role: 'user' }, reply('Done')]);
    expect(answered).toHaveLength(2);
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

describe('arbiter: a card', () => {
  it('A-47 has the skills, modes and URL that clients of Arbiter read', () => {
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
