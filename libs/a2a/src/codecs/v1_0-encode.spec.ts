import { Role, TaskState } from '../model.js';
import { artifactEvent, sampleArtifact, sampleMessage, sampleTask, statusEvent } from '../testing/samples.js';
import { V1_0_CODEC } from './v1_0.js';

describe('encoding 1.0', () => {
  it('wraps a send result in the member that names it', () => {
    const reply = { $case: 'message', value: sampleMessage({ role: Role.ROLE_AGENT }) } as const;
    expect(V1_0_CODEC.encodeResult('sendMessage', reply)).toMatchObject({ message: { role: 'ROLE_AGENT' } });
    expect(V1_0_CODEC.encodeResult('sendMessage', { $case: 'task', value: sampleTask() })).toMatchObject({
      task: {
        id: 'task-1',
        status: { state: 'TASK_STATE_SUBMITTED' },
        history: [{ parts: [{ text: 'hi' }] }],
      },
    });
  });

  it('gets and cancels as the bare task', () => {
    expect(V1_0_CODEC.encodeResult('getTask', sampleTask())).toMatchObject({ id: 'task-1' });
    expect(V1_0_CODEC.encodeResult('cancelTask', sampleTask({ history: [] }))).not.toHaveProperty('history');
  });

  it('P-8: an empty list still has all its members', () => {
    const page = { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 };
    expect(V1_0_CODEC.encodeResult('listTasks', page)).toEqual(page);
  });

  it('wraps a frame in the member that names it', () => {
    const completed = statusEvent(TaskState.TASK_STATE_COMPLETED);
    expect(V1_0_CODEC.encodeItem({ sequence: 3, payload: completed })).toEqual({
      statusUpdate: {
        taskId: 'task-1',
        contextId: 'context-1',
        status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-31T12:00:00.000Z' },
      },
    });
    expect(
      V1_0_CODEC.encodeItem({ sequence: 2, payload: artifactEvent(sampleArtifact(), true) }),
    ).toMatchObject({
      artifactUpdate: { append: true, artifact: { parts: [{ text: 'chunk' }] } },
    });
  });
});
