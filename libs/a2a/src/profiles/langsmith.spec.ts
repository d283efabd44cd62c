import { decodeEnvelope } from '../json-rpc.js';
import { ProtocolError } from '../protocol-error.js';
import { type SendMessageRequest, TaskState } from '../model.js';
import {
  artifactEvent,
  sampleArtifact,
  statusEvent,
  textPart,
} from '../../../../test/support/a2a/samples.js';
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
} from '../../../../test/support/a2a/profile.js';
import { assertAccept, assertEnvelopeId, assertParts } from './profile.js';
import { SPEC_PROFILE } from './spec.js';
import { LANGSMITH_PROFILE as langsmith } from './langsmith.js';

const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const agentWith = (...inputModes: string[]) => ({ definition: { inputModes } }) as never;
const messageWith = (...parts: object[]) => {
  const message = { kind: 'message', role: 'user', messageId: 'm', parts };
  return (decode(langsmith, 'message/send', { message }).request as SendMessageRequest).message;
};

describe('langsmith', () => {
  it.each([
    [true, 'text/event-stream', true],
    [true, 'application/json, text/event-stream', true],
    [true, '*/*', true],
    [true, 'text/*;q=0.5', true],
    [true, 'application/json', false],
    [true, 'text/event-stream;q=0', false],
    [true, '*/*, text/event-stream;q=0.0', false],
    [true, undefined, false],
    [false, 'application/json', true],
    [false, 'APPLICATION/JSON; charset=utf-8', true],
    [false, 'application/*', true],
    [false, 'text/event-stream', false],
    [false, '', false],
  ])('L-2 streaming %p with Accept %p is taken: %p', (isStreaming, header, taken) => {
    const check = () => assertAccept(langsmith, header, isStreaming);
    if (taken) expect(check).not.toThrow();
    else expect(wireOf(langsmith, errorOf(check))).toMatchObject({ http: 400, code: -32600 });
    expect(() => assertAccept(SPEC_PROFILE, header, isStreaming)).not.toThrow();
  });

  it('L-4 refuses a request without an id by HTTP 400, but takes null', () => {
    const envelope = (members: object) =>
      decodeEnvelope(JSON.stringify({ jsonrpc: '2.0', method: 'tasks/get', ...members }));
    const error = errorOf(() => assertEnvelopeId(langsmith, envelope({})));
    expect(wireOf(langsmith, error)).toMatchObject({ http: 400, code: -32600 });
    expect(() => assertEnvelopeId(langsmith, envelope({ id: null }))).not.toThrow();
    expect(() => assertEnvelopeId(SPEC_PROFILE, envelope({}))).not.toThrow();
  });

  it.each(['message/send', 'message/stream', 'tasks/get', 'tasks/cancel'])('L-5 L-15 has %s', (method) => {
    expect(langsmith.codecFor(method)?.version).toBe('0.3');
  });

  it('L-6 L-7 answers with the task and its artifacts, each with a name and whole texts', () => {
    const artifacts = [sampleArtifact({ parts: [textPart('Hello '), textPart('back')] })];
    expect(resultOf(langsmith, 'message/send', taskIn(COMPLETED, { artifacts, history: [] }))).toEqual({
      kind: 'task',
      id: 'task-1',
      contextId: 'context-1',
      status: { state: 'completed', timestamp: '2026-01-31T12:00:00.000Z' },
      artifacts: [
        { artifactId: 'a-1', name: 'Assistant Response', parts: [{ kind: 'text', text: 'Hello back' }] },
      ],
    });
    expect(langsmith.rules.reply).toBe('task');
  });

  it('L-7 has the reply as an artifact also of an agent that replies with a message', () => {
    const artifact = {
      artifactId: 'task-1-reply',
      name: 'Assistant Response',
      parts: [{ kind: 'text', text: 'Hi' }],
    };
    const reply = replyMessage('Hi');
    expect(resultOf(langsmith, 'tasks/get', taskIn(COMPLETED, {}, reply)).artifacts).toEqual([artifact]);
    const log = [opening(), statusEvent(COMPLETED, reply)];
    expect(framesOf(langsmith, 'message/stream', log)).toMatchObject([
      { sequence: 1, result: { kind: 'task' } },
      { sequence: 1, result: { kind: 'artifact-update', artifact, append: false, lastChunk: true } },
      { sequence: 2, result: { kind: 'status-update', final: true } },
    ]);
    expect(framesOf(langsmith, 'message/stream', log, { ...CONTEXT, after: 1 }).slice(1)).toHaveLength(1);
  });

  it('L-10 takes text and data in one message', () => {
    const message = messageWith({ kind: 'text', text: 'Hello' }, { kind: 'data', data: { locale: 'en' } });
    expect(() => assertParts(langsmith.parts, message, agentWith())).not.toThrow();
  });

  it.each([
    [[], 'image/png', false],
    [['text/plain', 'application/json'], 'text/plain', false],
    [['image/png'], 'image/png', true],
    [['image/*'], 'image/jpeg', true],
    [['*/*'], '', true],
    [['image/*'], 'audio/ogg', false],
  ])('L-11 an agent that declares %j takes a file of %p: %p', (modes, mimeType, taken) => {
    const message = messageWith(
      { kind: 'text', text: 'x' },
      { kind: 'file', file: { uri: 'https://x', mimeType } },
    );
    const check = () => assertParts(langsmith.parts, message, agentWith(...modes));
    if (taken) expect(check).not.toThrow();
    else expect(wireOf(langsmith, errorOf(check))).toMatchObject({ code: -32005, http: 200 });
  });

  it('L-13 streams envelopes, and names every chunk', () => {
    expect(langsmith.codecFor('message/stream')?.framing).toEqual({ enveloped: true });
    const log = [opening(), artifactEvent(sampleArtifact()), statusEvent(COMPLETED)];
    expect(framesOf(langsmith, 'message/stream', log).map(({ result }) => result)).toMatchObject([
      { kind: 'task', status: { state: 'submitted' } },
      { kind: 'artifact-update', artifact: { artifactId: 'a-1', name: 'Assistant Response' } },
      { kind: 'status-update', final: true },
    ]);
  });

  it('L-14 tasks/get takes a historyLength', () => {
    expect(decode(langsmith, 'tasks/get', { id: 'x', historyLength: 2 }).request).toMatchObject({
      historyLength: 2,
    });
  });

  it('L-16 answers HTTP 404 for an unknown assistant', () => {
    const error = new ProtocolError('agent-not-found', 'Agent not found: x');
    expect(wireOf(langsmith, error)).toMatchObject({ http: 404, code: -32001 });
  });
});
