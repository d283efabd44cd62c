import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import fc from 'fast-check';
import { type Part, Role, TaskState } from '../model.js';
import type { StreamItem } from '../operation.js';
import { dataPart } from '../reply.js';
import { serializePayload } from '../task.js';
import {
  artifactEvent,
  sampleArtifact,
  sampleMessage,
  sampleTask,
  statusEvent,
  textPart,
} from '../../../../test/support/a2a/samples.js';
import { V0_3_CODEC } from './v0_3.js';

const encodeItem = (payload: Parameters<typeof statusEvent>[0] | ReturnType<typeof statusEvent>) =>
  V0_3_CODEC.encodeItem({ sequence: 1, payload: payload as ReturnType<typeof statusEvent> }) as Record<
    string,
    unknown
  >;

describe('encoding 0.3', () => {
  it.each([
    [TaskState.TASK_STATE_SUBMITTED, 'submitted', false],
    [TaskState.TASK_STATE_WORKING, 'working', false],
    [TaskState.TASK_STATE_INPUT_REQUIRED, 'input-required', true],
    [TaskState.TASK_STATE_AUTH_REQUIRED, 'auth-required', true],
    [TaskState.TASK_STATE_COMPLETED, 'completed', true],
    [TaskState.TASK_STATE_FAILED, 'failed', true],
    [TaskState.TASK_STATE_CANCELED, 'canceled', true],
    [TaskState.TASK_STATE_REJECTED, 'rejected', true],
  ])('P-6: a status of %i is %s with final %s', (state, name, final) => {
    expect(encodeItem(statusEvent(state, sampleMessage({ role: Role.ROLE_AGENT })))).toEqual({
      kind: 'status-update',
      taskId: 'task-1',
      contextId: 'context-1',
      status: {
        state: name,
        timestamp: '2026-01-31T12:00:00.000Z',
        message: {
          kind: 'message',
          messageId: 'm-1',
          contextId: 'context-1',
          taskId: 'task-1',
          role: 'agent',
          parts: [{ kind: 'text', text: 'hi' }],
        },
      },
      final,
    });
  });

  it('P-6: a chunk carries its kind, append and lastChunk', () => {
    expect(encodeItem(artifactEvent(sampleArtifact({ name: 'n' }), true, true))).toEqual({
      kind: 'artifact-update',
      taskId: 'task-1',
      contextId: 'context-1',
      artifact: { artifactId: 'a-1', name: 'n', parts: [{ kind: 'text', text: 'chunk' }] },
      append: true,
      lastChunk: true,
    });
  });

  const metadata: fc.Arbitrary<Part['metadata']> = fc.constantFrom(undefined, {}, { b: { c: [null, 'x'] } });
  const text = fc.string({ unit: 'binary' });
  const textParts = fc.array(
    fc.record({ text, metadata }).map(({ text: said, metadata: ofPart }): Part => {
      const part = textPart(said);
      part.metadata = ofPart;
      return part;
    }),
  );
  const chunks = fc.record({
    parts: textParts,
    metadata,
    name: fc.constantFrom('', 'n'),
    description: fc.constantFrom('', 'd'),
    extensions: fc.constantFrom<string[]>([], ['urn:x']),
  });
  /** A chunk as it is stored. A codec that parses it fails the test. */
  const stored = (payload: ReturnType<typeof artifactEvent>): StreamItem => ({
    sequence: 1,
    json: serializePayload(payload),
    get payload(): never {
      throw new Error('nobody needs it');
    },
  });

  it('a stored chunk of text is what its payload is, without the payload', () => {
    fc.assert(
      fc.property(chunks, fc.boolean(), fc.boolean(), metadata, (chunk, append, lastChunk, ofEvent) => {
        const payload = artifactEvent(sampleArtifact(chunk), append, lastChunk);
        if (payload.$case === 'artifactUpdate') payload.value.metadata = ofEvent;
        expect(JSON.stringify(V0_3_CODEC.encodeItem(stored(payload)))).toBe(
          JSON.stringify(encodeItem(payload)),
        );
      }),
    );
  });

  it.each([dataPart({ a: 1 }), dataPart(null)])(
    'a stored chunk of other parts is what its payload is: %#',
    (part) => {
      const payload = artifactEvent(sampleArtifact({ parts: [textPart('x'), part] }), true, false);
      const item = { sequence: 1, payload, json: serializePayload(payload) };
      expect(JSON.stringify(V0_3_CODEC.encodeItem(item))).toBe(JSON.stringify(encodeItem(payload)));
    },
  );

  it('a task and a bare message are the result themselves', () => {
    const task = sampleTask({ artifacts: [sampleArtifact()] });
    expect(V0_3_CODEC.encodeResult('getTask', task)).toMatchObject({
      kind: 'task',
      id: 'task-1',
      contextId: 'context-1',
      status: { state: 'submitted' },
      history: [{ kind: 'message', role: 'user' }],
      artifacts: [{ artifactId: 'a-1' }],
    });
    const reply = { $case: 'message', value: sampleMessage({ role: Role.ROLE_AGENT }) } as const;
    expect(V0_3_CODEC.encodeResult('sendMessage', reply)).toMatchObject({ kind: 'message', role: 'agent' });
  });

  it('P-7: a task without history has none', () => {
    expect(V0_3_CODEC.encodeResult('getTask', sampleTask({ history: [] }))).not.toHaveProperty('history');
  });

  it('writes files and data its own way, and a stored null as a wrapped null', () => {
    const parts: Part[] = [
      {
        ...textPart(''),
        content: { $case: 'raw', value: Buffer.from([0, 255]) },
        filename: 'f',
        mediaType: 'a/b',
      },
      { ...textPart(''), content: { $case: 'url', value: 'https://x' } },
      { ...textPart(''), content: { $case: 'data', value: [1] } },
      { ...textPart(''), content: undefined },
    ];
    expect(encodeItem(artifactEvent(sampleArtifact({ parts })))).toMatchObject({
      artifact: {
        parts: [
          { kind: 'file', file: { bytes: 'AP8=', name: 'f', mimeType: 'a/b' } },
          { kind: 'file', file: { uri: 'https://x' } },
          { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
          { kind: 'data', data: { value: null }, metadata: { data_part_compat: true } },
        ],
      },
    });
  });

  const SENT: StreamItem['payload'][] = [
    { $case: 'task', value: sampleTask({ artifacts: [sampleArtifact()], metadata: { a: { b: 1 } } }) },
    { $case: 'task', value: sampleTask({ status: undefined, history: [] }) },
    statusEvent(TaskState.TASK_STATE_COMPLETED, sampleMessage({ extensions: ['https://e'], taskId: '' })),
    artifactEvent(sampleArtifact({ name: 'n', description: 'd', metadata: {}, extensions: ['https://e'] })),
    artifactEvent(
      sampleArtifact({
        parts: [
          { ...textPart(''), metadata: { m: 1 }, mediaType: 'text/plain' },
          { ...textPart(''), content: { $case: 'raw', value: Buffer.from('x') }, filename: 'f' },
          { ...textPart(''), content: { $case: 'url', value: 'https://x' }, mediaType: 'a/b' },
          ...[{ a: [1] }, [1], 'text', 0, false, null].map((value) => dataPart(value)),
          { ...dataPart(1), metadata: { m: 1 } },
        ],
      }),
    ),
  ];

  it.each(SENT)('writes what the SDK writes: %#', (payload) => {
    const { body } = new V03PushNotificationSerializer().serialize({ payload });
    expect(JSON.stringify(V0_3_CODEC.encodeItem({ sequence: 1, payload }))).toBe(body);
  });
});
