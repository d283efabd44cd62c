import { ProtocolError } from '../protocol-error.js';
import { TaskState } from '../model.js';
import { artifactEvent, sampleArtifact, statusEvent } from '../../../../test/support/a2a/samples.js';
import {
  decode,
  errorOf,
  framesOf,
  opening,
  resultOf,
  taskIn,
  wireOf,
} from '../../../../test/support/a2a/profile.js';
import { CAPSULE_PROFILE as capsule } from './capsule.js';

const message = { role: 'user', parts: [{ kind: 'text', text: 'Generate a short report' }] };

describe('capsule', () => {
  it('C-3 continues the task that a message names', () => {
    const params = { message: { ...message, messageId: 'm', taskId: 't-1' }, metadata: {} };
    expect(decode(capsule, 'message/send', params)).toMatchObject({
      request: { message: { taskId: 't-1' } },
    });
  });

  it('C-4 streams a message without a messageId, but does not send one', () => {
    expect(decode(capsule, 'message/stream', { message })).toMatchObject({
      operation: 'sendStreamingMessage',
      request: { message: { messageId: '' } },
    });
    expect(errorOf(() => decode(capsule, 'message/send', { message })).kind).toBe('invalid-params');
  });

  it('C-5 has each frame under its wrapper member and flat', () => {
    const log = [
      opening({ history: [] }),
      artifactEvent(sampleArtifact(), true),
      statusEvent(TaskState.TASK_STATE_COMPLETED),
    ];
    const ids = { taskId: 'task-1', contextId: 'context-1' };
    const timestamp = '2026-01-31T12:00:00.000Z';
    const task = {
      kind: 'task',
      id: 'task-1',
      contextId: 'context-1',
      status: { state: 'submitted', timestamp },
    };
    const artifactUpdate = {
      kind: 'artifact-update',
      ...ids,
      artifact: { artifactId: 'a-1', parts: [{ kind: 'text', text: 'chunk' }] },
      append: true,
      lastChunk: false,
    };
    const statusUpdate = {
      kind: 'status-update',
      ...ids,
      status: { state: 'completed', timestamp },
      final: true,
    };
    expect(framesOf(capsule, 'message/stream', log)).toEqual([
      { sequence: 1, result: { task, ...task } },
      { sequence: 2, result: { artifactUpdate, ...artifactUpdate } },
      { sequence: 3, result: { statusUpdate, ...statusUpdate } },
    ]);
    expect(capsule.codecFor('message/stream')?.framing).toEqual({ enveloped: true });
  });

  it('C-5 answers a unary call with the flat task or message', () => {
    const task = taskIn(TaskState.TASK_STATE_COMPLETED);
    expect(resultOf(capsule, 'message/send', task)).toMatchObject({ kind: 'task', id: 'task-1' });
    expect(resultOf(capsule, 'tasks/get', task)).not.toHaveProperty('task');
    expect(capsule.rules.reply).toBe('task-or-message');
  });

  it('C-6 C-7 reads and cancels', () => {
    expect(decode(capsule, 'tasks/get', { id: 'x', historyLength: 20 })).toEqual({
      operation: 'getTask',
      request: { tenant: '', id: 'x', historyLength: 20 },
    });
    expect(decode(capsule, 'tasks/cancel', { id: 'x' }).operation).toBe('cancelTask');
  });

  it('C-8 answers only Internal error, also for an agent that threw', () => {
    for (const error of [
      new ProtocolError('internal', 'Internal error'),
      new ProtocolError('agent-threw', 'the agent failed: secret'),
    ]) {
      expect(wireOf(capsule, error)).toMatchObject({ code: -32603, message: 'Internal error' });
    }
    expect(wireOf(capsule, new ProtocolError('parse', 'x')).code).toBe(-32700);
  });

  it('S-7 names an unknown method', () => {
    expect(wireOf(capsule, ProtocolError.methodNotFound('unknown/method'))).toMatchObject({
      code: -32601,
      message: 'method not found: unknown/method',
    });
  });

  it('S-8 takes bodies of 1 MiB', () => {
    expect(capsule.bodyLimit).toBe('small');
  });
});
