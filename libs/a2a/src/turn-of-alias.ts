import { isDeepStrictEqual } from 'node:util';
import { ProtocolError } from './protocol-error.js';
import { type Artifact, Message, Role, type Task, TaskState } from './model.js';
import type { ClientTaskIdRule } from './operation-rules.js';
import { isInterrupted, isTerminal } from './task.js';

/** `join`: wait for the task there is; `answer`: continue with it; `new-turn`: a new task of the same context. */
export type AliasedTurn = 'join' | 'answer' | 'new-turn';

/**
 * What a message for an id means that the caller has used before (wire contract O-8, S-3). The very message
 * the task is answering is a repeated call and joins it, but a task that has asked twice takes the same answer
 * twice.
 * @param task the task that the id names, with its whole history
 * @throws ProtocolError `task-canceled` where canceled tasks are refused; `unsupported-operation` if the task
 * is at work on another message
 */
export function turnOfAlias(task: Task, message: Message, rule: ClientTaskIdRule): AliasedTurn {
  const state = task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const taskId = task.id;
  if (state === TaskState.TASK_STATE_CANCELED && rule.canceled === 'refused') {
    throw new ProtocolError('task-canceled', 'The task was canceled: send the message under another id', {
      metadata: { taskId },
    });
  }
  const asked = task.history.filter(({ role }) => role === Role.ROLE_USER);
  const last = asked.at(-1);
  const repeated = last !== undefined && isSameMessage(last, message);
  const joinsAny = rule.joins === 'any-task';
  if (isInterrupted(state)) return repeated && joinsAny && asked.length === 1 ? 'join' : 'answer';
  if (isTerminal(state)) return repeated && joinsAny ? 'join' : 'new-turn';
  if (repeated) return 'join';
  throw new ProtocolError(
    'unsupported-operation',
    'The task is still working on an earlier message: wait until it has ended, or cancel it',
    { metadata: { taskId } },
  );
}

/** Whether a caller has sent the same thing again. Only ids that it has chosen itself are compared. */
function isSameMessage(stored: Message, sent: Message): boolean {
  if (sent.messageId !== '' && sent.messageId !== stored.messageId) return false;
  return isDeepStrictEqual(contentOf(stored), contentOf(sent));
}

function contentOf(message: Message): unknown {
  const { parts, metadata } = Message.toJSON(message) as { parts?: unknown; metadata?: unknown };
  return { parts, metadata };
}

/** What a turn has added to the artifacts of its task. */
export function turnArtifacts(after: readonly Artifact[], before: readonly Artifact[] = []): Artifact[] {
  const known = new Map(before.map((artifact) => [artifact.artifactId, artifact]));
  return after.flatMap((artifact) => {
    const earlier = known.get(artifact.artifactId);
    if (!earlier) return [artifact];
    if (!isContinued(earlier, artifact)) return [artifact];
    const parts = artifact.parts.slice(earlier.parts.length);
    return parts.length > 0 ? [{ ...artifact, parts }] : [];
  });
}

/** Chunks are added at the end; an artifact that begins otherwise was replaced. */
const isContinued = (earlier: Artifact, artifact: Artifact): boolean =>
  isDeepStrictEqual(artifact.parts.slice(0, earlier.parts.length), earlier.parts);
