import { type Artifact, Role, TaskState, type Message, type Part } from '@baton/a2a';
import type { AgentOutput, Turn } from './runtime.js';

/** A part that holds text. */
export const textPart = (text: string): Part => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

/** A part that holds a JSON value. */
export const dataPart = (value: unknown): Part => ({
  content: { $case: 'data', value },
  metadata: undefined,
  filename: '',
  mediaType: 'application/json',
});

/** A part that is a file. */
export const filePart = (filename: string, mediaType: string, value: Buffer): Part => ({
  content: { $case: 'raw', value },
  metadata: undefined,
  filename,
  mediaType,
});

/** A status of the turn's task, with a text or parts for the caller if there is something to say. */
export function status(turn: Turn, state: TaskState, said?: string | Part[]): AgentOutput {
  const { id: taskId, contextId } = turn.task;
  const parts = typeof said === 'string' ? [textPart(said)] : said;
  const message = parts && statusMessage(turn, parts);
  const timestamp = new Date().toISOString();
  return {
    $case: 'statusUpdate',
    value: { taskId, contextId, status: { state, message, timestamp }, metadata: undefined },
  };
}

/** The turn's end when the reply is in its artifacts: no message, so that nothing is said twice. */
export const completed = (turn: Turn): AgentOutput => status(turn, TaskState.TASK_STATE_COMPLETED);

/** The turn's end when the agent can't do what it was asked. */
export const failed = (turn: Turn, text: string): AgentOutput =>
  status(turn, TaskState.TASK_STATE_FAILED, text);

/** The turn's end when the agent needs an answer before it can go on. */
export const inputRequired = (turn: Turn, question: string | Part[]): AgentOutput =>
  status(turn, TaskState.TASK_STATE_INPUT_REQUIRED, question);

/** One chunk of an artifact of the turn's task. */
export function artifactChunk(
  turn: Turn,
  artifact: { artifactId: string; name: string; parts: Part[]; metadata?: Artifact['metadata'] },
  { append = false, lastChunk = true } = {},
): AgentOutput {
  const { id: taskId, contextId } = turn.task;
  return {
    $case: 'artifactUpdate',
    value: {
      taskId,
      contextId,
      artifact: { metadata: undefined, ...artifact, description: '', extensions: [] },
      append,
      lastChunk,
      metadata: undefined,
    },
  };
}

/** The id comes from the run, so that another attempt of the same turn says the same message. */
function statusMessage(turn: Turn, parts: Part[]): Message {
  return {
    messageId: `${turn.runId}-status`,
    contextId: turn.task.contextId,
    taskId: turn.task.id,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}
