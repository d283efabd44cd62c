import { type Artifact, type Message, type Task, TaskState } from '../model.js';
import {
  agentMessage,
  dataPart,
  eventKindOf,
  finalMessage,
  ownMetadata,
  replyId,
  textOf,
  textPart,
} from '../reply.js';

const TEXT_NAME = 'response';

/** An artifact as Arbiter's clients get it: the text of the reply, and the rest as an artifact of its own. */
interface Pieces {
  text: string;
  other?: Artifact;
}

/** Take an artifact, or a chunk of one, apart (wire contract ). */
export function takeApart(artifact: Artifact): Pieces {
  const kind = eventKindOf(artifact);
  switch (kind) {
    case undefined:
      return ofReply(artifact);
    case 'tool-call':
      return { text: '', other: withData(mark(artifact, 'tool_call'), ['tool', 'ok']) };
    case 'agent-reply':
      return { text: '', other: withData(mark(artifact, 'agent_reply'), ['agent', 'depth', 'content']) };
    default:
      return { text: '', other: mark(artifact, kind.replaceAll('-', '_')) };
  }
}

/** The artifact that holds the text of a task's reply. */
export const textArtifact = (taskId: string, text: string): Artifact => ({
  artifactId: `${taskId}-text-0`,
  name: TEXT_NAME,
  description: '',
  parts: [textPart(text)],
  metadata: undefined,
  extensions: [],
});

function ofReply(artifact: Artifact): Pieces {
  const text = textOf(artifact.parts);
  const parts = artifact.parts.filter(({ content }) => content?.$case !== 'text');
  if (parts.length === 0) return { text };
  const file = parts.find(({ content }) => content?.$case === 'raw' || content?.$case === 'url');
  if (!file) return { text, other: mark({ ...artifact, parts }, 'data') };
  return { text, other: { ...artifact, parts, name: file.filename || artifact.name } };
}

const mark = (artifact: Artifact, kind: string): Artifact => ({
  ...artifact,
  metadata: { ...ownMetadata(artifact.metadata), [`x-arbiter.${kind}`]: true },
});

/** One data part with these members, those that the agent has sent. */
function withData(artifact: Artifact, members: readonly string[]): Artifact {
  const data = artifact.parts.find(({ content }) => content?.$case === 'data');
  const values = (data?.content?.value ?? {}) as Record<string, unknown>;
  const value = Object.fromEntries(
    members.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]),
  );
  return { ...artifact, parts: [dataPart(value)] };
}

/** The final message under Arbiter's id for it. A completed task always has one. */
export function replyOf(task: Pick<Task, 'id' | 'contextId' | 'status' | 'artifacts'>): Message | undefined {
  const message = finalMessage({ ...task, history: [], metadata: undefined });
  if (message) return { ...message, messageId: replyId(task.id) };
  const completed = task.status?.state === TaskState.TASK_STATE_COMPLETED;
  return completed ? agentMessage(task, replyId(task.id), [textPart('')]) : undefined;
}
