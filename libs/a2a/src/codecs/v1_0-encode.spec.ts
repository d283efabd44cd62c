import { Role, TaskState } from '../model.js';
import {
  artifactEvent,
  sampleArtifact,
  sampleMessage,
  sampleTask,
  statusEvent,
} from '../../../../test/support/a2a/samples.js';
import { serializePayload } from '../task.js';
import type { StreamItem } from '../operation.js';
import { frameRecord } from './codec.js';
import { V0_3_CODEC } from './v0_3.js';
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

  it('passes the text of a stored event on as it is, without reading it', () => {
    const json = '{"statusUpdate":{"taskId": "as it is" }}';
    const item: StreamItem = {
      sequence: 3,
      json,
      get payload(): never {
        throw new Error('nobody needs it');
      },
    };
    const [frame, ...more] = V1_0_CODEC.streamEncoder()(item);
    expect([frame?.sequence, frame?.json, more]).toEqual([3, json, []]);
    expect(frameRecord(V1_0_CODEC.framing, frame!, (result) => `[${result}]`)).toBe(
      `id: 3\ndata: [${json}]\n\n`,
    );
  });

  it('encodes a stored event in an older version once for all streams', () => {
    let reads = 0;
    const payload = statusEvent(TaskState.TASK_STATE_COMPLETED);
    const item: StreamItem = {
      sequence: 3,
      json: serializePayload(payload),
      get payload() {
        reads += 1;
        return payload;
      },
    };
    const encoded = JSON.stringify(V0_3_CODEC.encodeItem(item));
    const before = reads;
    const frames = [1, 2, 3].map(() => V0_3_CODEC.streamEncoder()(item)[0]?.json);
    expect(frames).toEqual([encoded, encoded, encoded]);
    expect(reads - before).toBe(1);
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
