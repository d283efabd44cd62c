/**
 * `orloj`: Orloj. 0.1 with ids chosen by the caller, each a task that can be joined, answered and continued;
 * 0.3 and 1.0 beside it. Every agent of a tenant is an agent system, unless it is not enabled.
 */
import { defineCodec } from '../codecs/codec.js';
import type { Fields } from '../codecs/fields.js';
import { taskFrames, v0_1 } from '../codecs/v0_1.js';
import { V0_3_CODEC } from '../codecs/v0_3.js';
import { V1_0_CODEC } from '../codecs/v1_0.js';
import { type Artifact, type Message, Part, Role, type Task, TaskState, type JsonObject } from '../model.js';
import { joinTexts, withReply } from '../reply.js';
import { agentOfMetadata, defineProfile } from './profile.js';

const V0_1_CODEC = defineCodec({
  ...v0_1(writeTask),
  checkParams: assertStringMetadata,
  shape: { task: (task, { historyLength }) => withReply(task, historyLength), stream: repliedFrames },
  rules: { streamEnds: 'with-task', history: 'conversation' },
});

export const ORLOJ_PROFILE = defineProfile({
  name: 'orloj',
  paths: ['/a2a', '/v1/agent-systems/:agent/a2a', '/v1/agents/:agent/a2a'],
  codecs: [V0_1_CODEC, V0_3_CODEC, V1_0_CODEC],
  versions: ['0.1', '0.3', '1.0'],
  errors: {
    'agent-not-found': { code: -32003, http: 200 },
    'task-not-found': {
      message: ({ detail: { metadata } }) => {
        if (metadata?.deletedAt === undefined) return 'task not found';
        const how =
          metadata.retentionDays === '0'
            ? `at ${metadata.deletedAt}`
            : `after ${metadata.retentionDays} days of retention`;
        return `task not found: it ended at ${metadata.endedAt} and was deleted ${how}`;
      },
      data: ({ detail: { metadata } }) => ({
        task_id: metadata?.taskId ?? '',
        ...(metadata?.deletedAt && { ended_at: metadata.endedAt, deleted_at: metadata.deletedAt }),
      }),
    },
    'task-canceled': { code: -32002, reason: 'TASK_CANCELLED', message: () => 'task cancelled' },
  },
  bodyLimit: 'small',
  chooseAgent: agentOfMetadata('agent', 'target'),
  onlyEnabledAgents: true,
  rules: {
    reply: 'task',
    agentThrew: 'failed-task',
    taskScope: 'tenant',
    clientTaskIds: { joins: 'any-task', canceled: 'refused' },
    cancelAgain: 'returns-it',
    cancelMetadata: 'kept',
  },
});

/** Frames of the whole task, with the reply of a completed one in its status. */
function repliedFrames(): ReturnType<typeof taskFrames> {
  const frames = taskFrames();
  return (item) =>
    frames(item).map((frame) =>
      frame.payload.$case === 'task'
        ? { ...frame, payload: { $case: 'task', value: withReply(frame.payload.value) } }
        : frame,
    );
}

const STATES: Partial<Record<TaskState, string>> = {
  [TaskState.TASK_STATE_WORKING]: 'working',
  [TaskState.TASK_STATE_INPUT_REQUIRED]: 'input-required',
  [TaskState.TASK_STATE_AUTH_REQUIRED]: 'input-required',
  [TaskState.TASK_STATE_COMPLETED]: 'completed',
  [TaskState.TASK_STATE_FAILED]: 'failed',
  [TaskState.TASK_STATE_CANCELED]: 'canceled',
  [TaskState.TASK_STATE_REJECTED]: 'rejected',
};

/** A task as Orloj writes it: bare, without kinds and times, artifacts numbered, metadata as strings. */
function writeTask({ id, status, artifacts, history, metadata }: Task): JsonObject {
  return {
    id,
    status: {
      state: STATES[status?.state ?? TaskState.TASK_STATE_UNSPECIFIED] ?? 'submitted',
      ...(status?.message && { message: writeMessage(status.message) }),
    },
    artifacts: artifacts.map(writeArtifact),
    ...(history.length > 0 && { history: history.map(writeMessage) }),
    ...(metadata && Object.keys(metadata).length > 0 && { metadata: writeMetadata(metadata) }),
  };
}

const writeMessage = ({ role, parts }: Message): JsonObject => ({
  role: role === Role.ROLE_AGENT ? 'agent' : 'user',
  parts: writeParts(parts),
});

const writeArtifact = ({ artifactId, name, description, parts }: Artifact, index: number): JsonObject => ({
  name: name || artifactId,
  description,
  parts: writeParts(parts),
  index,
});

const writeParts = (parts: readonly Part[]): JsonObject[] => joinTexts(parts).map(writePart);

/** There is no part for files: they travel as data that has their members. */
function writePart(part: Part): JsonObject {
  const { content, metadata } = part;
  const extra = metadata && { metadata };
  if (content?.$case === 'text') return { type: 'text', text: content.value, ...extra };
  if (content?.$case === 'raw' || content?.$case === 'url') {
    const { metadata: _metadata, ...file } = Part.toJSON(part) as JsonObject;
    return { type: 'data', data: file, ...extra };
  }
  return { type: 'data', data: (content?.value as unknown) ?? null, ...extra };
}

const writeMetadata = (metadata: NonNullable<Task['metadata']>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(metadata).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );

/** Throws `invalid-params` if the params' metadata is not a map of strings. */
function assertStringMetadata(params: Fields): void {
  const metadata = params.child('metadata');
  for (const name of Object.keys(params.object('metadata') ?? {})) metadata?.string(name);
}
