import type { WriteTask } from '../../codecs/v0_1/index.js';
import { type Artifact, type Message, Part, Role, type Task, TaskState } from '../../model.js';
import { joinTexts } from '../../reply.js';

type JsonObject = Record<string, unknown>;

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
export const writeTask: WriteTask = ({ id, status, artifacts, history, metadata }) => ({
  id,
  status: {
    state: STATES[status?.state ?? TaskState.TASK_STATE_UNSPECIFIED] ?? 'submitted',
    ...(status?.message && { message: writeMessage(status.message) }),
  },
  artifacts: artifacts.map(writeArtifact),
  ...(history.length > 0 && { history: history.map(writeMessage) }),
  ...(metadata && Object.keys(metadata).length > 0 && { metadata: writeMetadata(metadata) }),
});

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
