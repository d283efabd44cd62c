import { type Artifact, type Message, Role, type Task, TaskState } from '../../../libs/a2a/src/model.js';
import type { EventPayload } from '../../../libs/a2a/src/artifact-fold.js';
import { textPart } from '../../../libs/a2a/src/reply.js';

export { textPart };

/** Whole canonical values for tests; pass what matters to the test. */
export const sampleMessage = (members: Partial<Message> = {}): Message => ({
  messageId: 'm-1',
  contextId: 'context-1',
  taskId: 'task-1',
  role: Role.ROLE_USER,
  parts: [textPart('hi')],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...members,
});

export const sampleArtifact = (members: Partial<Artifact> = {}): Artifact => ({
  artifactId: 'a-1',
  name: '',
  description: '',
  parts: [textPart('chunk')],
  metadata: undefined,
  extensions: [],
  ...members,
});

export const sampleTask = (members: Partial<Task> = {}): Task => ({
  id: 'task-1',
  contextId: 'context-1',
  status: {
    state: TaskState.TASK_STATE_SUBMITTED,
    message: undefined,
    timestamp: '2026-01-31T12:00:00.000Z',
  },
  artifacts: [],
  history: [sampleMessage()],
  metadata: undefined,
  ...members,
});

export const statusEvent = (state: TaskState, message?: Message): EventPayload => ({
  $case: 'statusUpdate',
  value: {
    taskId: 'task-1',
    contextId: 'context-1',
    status: { state, message, timestamp: '2026-01-31T12:00:00.000Z' },
    metadata: undefined,
  },
});

export const artifactEvent = (artifact: Artifact, append = false, lastChunk = false): EventPayload => ({
  $case: 'artifactUpdate',
  value: { taskId: 'task-1', contextId: 'context-1', artifact, append, lastChunk, metadata: undefined },
});
