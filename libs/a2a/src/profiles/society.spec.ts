import { ProtocolError } from '../protocol-error.js';
import { type Part, type SendMessageRequest, TaskState } from '../model.js';
import { sampleArtifact, textPart } from '../../../../test/support/a2a/samples.js';
import {
  CONTEXT,
  decode,
  errorOf,
  replyMessage,
  resultOf,
  taskIn,
  wireOf,
} from '../../../../test/support/a2a/profile.js';
import { assertParts } from './profile.js';
import { SOCIETY_PROFILE as society } from './society.js';

const context = { ...CONTEXT, clientTaskId: 'task-123' };
const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const send = (parts: object[]) =>
  decode(society, 'tasks/send', { id: 'task-123', message: { role: 'user', parts } });
const echo = (...parts: Part[]) => [sampleArtifact({ name: 'response', parts })];

describe('society', () => {
  it('S-1 has a card with what its clients read, at the root', () => {
    const definition = {
      name: 'claude',
      description: 'Claude Code agent',
      version: '1',
      runtime: 'echo',
      config: {},
      skills: [],
      inputModes: [],
      outputModes: [],
      extensions: [],
    };
    const agent = { id: 'i', slug: 'code', origin: 'catalog', definition } as const;
    expect(society.card?.encode(agent, 'http://localhost:8003')).toMatchObject({
      name: 'claude',
      description: 'Claude Code agent',
      url: 'http://localhost:8003/',
      skills: [{ id: 'code', name: 'claude' }],
      capabilities: { streaming: true, pushNotifications: false },
    });
  });

  it('S-2 takes the id of the params as the thread’s', () => {
    expect(send([{ type: 'text', text: 'Hello, agent' }])).toMatchObject({
      operation: 'sendMessage',
      clientTaskId: 'task-123',
      request: { message: { taskId: '', messageId: '', parts: [{ content: { value: 'Hello, agent' } }] } },
    });
    expect(errorOf(() => decode(society, 'tasks/send', { message: {} })).message).toMatch(/^id: /);
  });

  it('S-3 continues a thread, whatever its last turn has come to', () => {
    expect(society.rules.clientTaskIds).toEqual({ joins: 'working-task', canceled: 'new-turn' });
  });

  it('S-4 answers with the id that was sent, strings and texts', () => {
    const artifacts = echo(textPart('Hello! '), textPart("I'm the agent."));
    expect(resultOf(society, 'tasks/send', taskIn(COMPLETED, { artifacts }), context)).toEqual({
      id: 'task-123',
      status: { state: 'completed', message: '' },
      messages: [],
      artifacts: [{ name: 'response', parts: [{ type: 'text', text: "Hello! I'm the agent." }] }],
    });
  });

  it('S-4 has a reply that is a message as an artifact', () => {
    const json = resultOf(society, 'tasks/send', taskIn(COMPLETED, {}, replyMessage('Hi')), context);
    expect(json).toMatchObject({
      status: { message: '' },
      artifacts: [{ parts: [{ type: 'text', text: 'Hi' }] }],
    });
  });

  it('S-4 has only what this turn has added', () => {
    const value = taskIn(COMPLETED, {
      artifacts: [sampleArtifact(), ...echo(textPart('old'), textPart('new'))],
    });
    value.artifacts[1]!.artifactId = 'a-2';
    const priorArtifacts = [
      sampleArtifact(),
      sampleArtifact({ artifactId: 'a-2', parts: [textPart('old')] }),
    ];
    const codec = society.codecFor('tasks/send')!;
    expect(
      codec.encodeResult('sendMessage', { $case: 'task', value, priorArtifacts }, context),
    ).toMatchObject({
      artifacts: [{ parts: [{ text: 'new' }] }],
    });
  });

  it('S-4 writes data and files as text', () => {
    const parts: Part[] = [
      { ...textPart(''), content: { $case: 'data', value: { a: 1 } } },
      { ...textPart(''), content: { $case: 'url', value: 'https://x' } },
      { ...textPart(''), content: { $case: 'raw', value: Buffer.from('abc') }, filename: 'f' },
    ];
    const artifacts = parts.map((part) => sampleArtifact({ parts: [part] }));
    const json = resultOf(society, 'tasks/send', taskIn(COMPLETED, { artifacts }), context);
    expect(json.artifacts).toEqual([
      { parts: [{ type: 'text', text: '{"a":1}' }] },
      { parts: [{ type: 'text', text: 'https://x' }] },
      { parts: [{ type: 'text', text: '[f, bytes: 3 bytes]' }] },
    ]);
  });

  it.each([
    [TaskState.TASK_STATE_SUBMITTED, 'submitted', 'said'],
    [TaskState.TASK_STATE_WORKING, 'working', 'said'],
    [TaskState.TASK_STATE_COMPLETED, 'completed', ''],
    [TaskState.TASK_STATE_INPUT_REQUIRED, 'completed', ''],
    [TaskState.TASK_STATE_AUTH_REQUIRED, 'completed', ''],
    [TaskState.TASK_STATE_FAILED, 'failed', 'said'],
    [TaskState.TASK_STATE_REJECTED, 'failed', 'said'],
    [TaskState.TASK_STATE_CANCELED, 'cancelled', 'said'],
    [TaskState.TASK_STATE_UNSPECIFIED, 'submitted', 'said'],
  ])('S-5 writes state %i as %s', (state, name, message) => {
    const json = resultOf(society, 'tasks/send', taskIn(state, {}, replyMessage('said')), context);
    expect(json.status).toEqual({ state: name, message });
  });

  it.each([
    [{ type: 'data', data: {} }],
    [{ type: 'file', file: { uri: 'https://x' } }],
    [{ type: 'image' }],
    [{ kind: 'data', data: {} }],
    [{ url: 'https://x' }],
  ])('S-6 refuses the part %j with -32602', (part) => {
    const error = errorOf(() => {
      const { message } = send([{ type: 'text', text: 'x' }, part]).request as SendMessageRequest;
      assertParts(society.parts, message, { definition: { inputModes: ['*/*'] } } as never);
    });
    expect(wireOf(society, error)).toMatchObject({ code: -32602, http: 200 });
    expect(error.message).toContain('message.parts[1]');
  });

  it('S-7 has one method', () => {
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/sendSubscribe', 'message/send']) {
      expect(society.codecFor(method)).toBeUndefined();
    }
    expect(wireOf(society, ProtocolError.methodNotFound('unknown/method')).message).toBe(
      'method not found: unknown/method',
    );
  });

  it('S-8 S-9 takes 1 MiB and waits 30 s', () => {
    expect(society.bodyLimit).toBe('small');
    expect(society.rules.wait).toBe('limited');
  });

  it('an agent that threw is an internal error', () => {
    expect(wireOf(society, new ProtocolError('agent-threw', 'secret'))).toMatchObject({
      code: -32603,
      message: 'Internal error',
    });
  });
});
