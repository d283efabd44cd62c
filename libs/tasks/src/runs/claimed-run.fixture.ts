import { type Artifact, type Message, Role, type Task, TaskState, textPart } from '@baton/a2a';
import type { ClaimedRun } from '@baton/database';

export const artifact = (artifactId: string, ...texts: string[]): Artifact => ({
  artifactId,
  name: '',
  description: '',
  parts: texts.map((text) => textPart(text)),
  metadata: undefined,
  extensions: [],
});

export const message = (text: string, role = Role.ROLE_AGENT): Message => ({
  messageId: 'm',
  contextId: 'wrong',
  taskId: 'wrong',
  role,
  parts: [textPart(text)],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

/** A run as a worker claims it: sequence 1 is the task, sequence 2 `working`. */
export function claimedRun(overrides: Partial<ClaimedRun> = {}): ClaimedRun {
  const task: Task = {
    id: 'task',
    contextId: 'context',
    status: { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined },
    artifacts: [],
    history: [],
    metadata: undefined,
  };
  return {
    tenantId: 'tenant',
    taskId: 'task',
    runId: 'run',
    attempt: 1,
    waitedSeconds: 0,
    agentId: 'echo',
    owner: null,
    snapshot: { task, sequence: 2 },
    message: message('hello', Role.ROLE_USER),
    details: { metadata: undefined, configuration: undefined },
    startSequence: 1,
    baseSequence: 1,
    artifactsAtStart: [],
    artifactsAreWhole: true,
    logged: { events: 2, bytes: 0 },
    extensions: [],
    traceparent: null,
    parentTaskId: null,
    hasPushConfigs: false,
    runsAlone: false,
    workingEvent: null,
    ...overrides,
  };
}
