import type { AnswerContext, Shape } from '../codecs/codec.js';
import {
  type Artifact,
  type Message,
  Role,
  type Task,
  type TaskArtifactUpdateEvent,
  TaskState,
  type TaskStatusUpdateEvent,
} from '../model.js';
import type { StreamItem } from '../operation.js';
import {
  USAGE,
  agentMessage,
  dataPart,
  eventKindOf,
  finalMessage,
  ownMetadata,
  replyId,
  textOf,
  textPart,
  tokenUsage,
} from '../reply.js';
import { endsTurn, historyTail, isInterrupted, isTerminal } from '../task.js';

/** What Arbiter's clients expect of a task and of the frames of a stream. */
export const ARBITER_SHAPE: Shape = {
  task: shapeTask,
  stream: (context) => {
    const stream = new ArbiterStream(context.after ?? 0);
    return (item) => stream.next(item);
  },
};

/** the reply as `<taskId>-r`, a history only with it, and Arbiter's metadata. */
function shapeTask(task: Task, { agentId, historyLength }: AnswerContext): Task {
  const { id, status, artifacts } = task;
  const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const message = isInterrupted(state) ? status?.message : replyOf(task);
  return {
    ...task,
    status: status && { ...status, message },
    artifacts: shapeArtifacts(id, artifacts),
    history: message ? historyTail(dialogue(task, message), historyLength) : [],
    metadata: shapeMetadata(task.metadata, agentId),
  };
}

function shapeArtifacts(taskId: string, artifacts: readonly Artifact[]): Artifact[] {
  const pieces = artifacts.map(takeApart);
  const text = pieces.map((piece) => piece.text).join('');
  const others = pieces.flatMap(({ other }) => (other ? [other] : []));
  return text === '' ? others : [textArtifact(taskId, text), ...others];
}

/** The message of the user and the answer of the agent, without its texts in between. */
function dialogue({ history, status }: Task, reply: Message): Message[] {
  const isOver = isTerminal(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);
  const answers = history.filter(
    ({ role }, index) => role === Role.ROLE_USER || history[index + 1]?.role === Role.ROLE_USER,
  );
  return isOver || answers.at(-1)?.messageId !== reply.messageId ? [...answers, reply] : answers;
}

function shapeMetadata(metadata: Task['metadata'], agentId: string): Task['metadata'] {
  const { input, output } = tokenUsage(metadata);
  const { [USAGE]: _usage, ...others } = metadata ?? {};
  return {
    ...others,
    'x-arbiter.agent_id': agentId,
    'x-arbiter.input_tokens': input,
    'x-arbiter.output_tokens': output,
  };
}

/**
 * The frames of one stream as Arbiter's clients expect them. The Task that opens a
 * stream becomes a `working` status, or, if it has ended, the one final status. Text of the reply runs
 * through one artifact, closed by a `lastChunk` before the status that ends the turn.
 */
class ArbiterStream {
  private ids = { taskId: '', contextId: '' };
  /** Text of this turn's reply by the agent's own artifact. */
  private readonly texts = new Map<string, string>();
  private hasText = false;

  /** @param after items up to this sequence are taken in, but not sent again */
  constructor(private readonly after: number) {}

  next(item: StreamItem): StreamItem[] {
    const { sequence, payload } = item;
    const payloads = this.translate(payload);
    if (sequence <= this.after) return [];
    // A reader of all but the last event has this event still to come.
    return payloads.map((payload, i) => ({
      sequence: i < payloads.length - 1 ? sequence - 1 : sequence,
      payload,
    }));
  }

  private translate(payload: StreamItem['payload']): StreamItem['payload'][] {
    switch (payload.$case) {
      case 'task':
        return [this.open(payload.value)];
      case 'statusUpdate':
        return this.status(payload.value);
      case 'artifactUpdate':
        return payload.value.artifact ? this.artifact(payload.value, payload.value.artifact) : [];
    }
  }

  private open(task: Task): StreamItem['payload'] {
    const { id: taskId, contextId, status } = task;
    this.ids = { taskId, contextId };
    this.startTurn();
    const isOver = status && isTerminal(status.state);
    if (isOver) return this.statusOf({ ...status, message: replyOf(task) });
    const timestamp = status?.timestamp;
    return this.statusOf({ state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp });
  }

  private status({ taskId, contextId, status }: TaskStatusUpdateEvent): StreamItem['payload'][] {
    this.ids = { taskId, contextId };
    if (!status) return [];
    if (endsTurn(status.state)) return this.endTurn(status);
    if (status.state === TaskState.TASK_STATE_SUBMITTED) this.startTurn();
    // The stream has begun with `working`; only output of the agent in between is new.
    return status.message ? [this.progress(status.message)] : [];
  }

  private artifact(update: TaskArtifactUpdateEvent, artifact: Artifact): StreamItem['payload'][] {
    const { artifactId } = artifact;
    const { text, other } = takeApart(artifact);
    const before = this.texts.get(artifactId) ?? '';
    const isReplaced = !update.append && before !== '';
    if (text !== '' || isReplaced) this.texts.set(artifactId, update.append ? before + text : text);
    const payloads = isReplaced ? [this.text(this.wholeText(), true)] : text === '' ? [] : [this.text(text)];
    return other
      ? [...payloads, { $case: 'artifactUpdate', value: { ...update, artifact: other } }]
      : payloads;
  }

  private endTurn(status: NonNullable<Task['status']>): StreamItem['payload'][] {
    const { taskId: id, contextId } = this.ids;
    const artifacts = this.hasText ? [textArtifact(id, this.wholeText())] : [];
    const message = isTerminal(status.state) ? replyOf({ id, contextId, status, artifacts }) : status.message;
    const rest = status.state === TaskState.TASK_STATE_COMPLETED ? textOf(message?.parts ?? []) : '';
    const last = this.hasText ? [this.lastText('')] : rest === '' ? [] : [this.lastText(rest)];
    return [...last, this.statusOf({ ...status, message })];
  }

  private startTurn(): void {
    this.texts.clear();
    this.hasText = false;
  }

  private wholeText(): string {
    return [...this.texts.values()].join('');
  }

  /** A chunk of the reply's text; `anew` replaces what was sent of it. */
  private text(text: string, anew = false, lastChunk = false): StreamItem['payload'] {
    const append = this.hasText && !anew;
    this.hasText = true;
    const artifact = textArtifact(this.ids.taskId, text);
    return {
      $case: 'artifactUpdate',
      value: { ...this.ids, artifact, append, lastChunk, metadata: undefined },
    };
  }

  private lastText(text: string): StreamItem['payload'] {
    return this.text(text, false, true);
  }

  private statusOf(status: NonNullable<Task['status']>): StreamItem['payload'] {
    return { $case: 'statusUpdate', value: { ...this.ids, status, metadata: undefined } };
  }

  /** Output of a working agent is data, so that no client takes it for the reply. */
  private progress(message: Message): StreamItem['payload'] {
    const artifact: Artifact = {
      artifactId: `${this.ids.taskId}-${message.messageId}`,
      name: 'status',
      description: '',
      parts: [dataPart({ state: 'working', message: textOf(message.parts) })],
      metadata: { 'x-arbiter.status': true },
      extensions: [],
    };
    return {
      $case: 'artifactUpdate',
      value: { ...this.ids, artifact, append: false, lastChunk: true, metadata: undefined },
    };
  }
}

const TEXT_NAME = 'response';

/** What an artifact is to Arbiter: text of the reply, and what is left of it as an artifact of its own. */
interface Pieces {
  text: string;
  other?: Artifact;
}

/** Take an artifact, or a chunk of one, apart (wire contract ). */
function takeApart(artifact: Artifact): Pieces {
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
const textArtifact = (taskId: string, text: string): Artifact => ({
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
function replyOf(task: Pick<Task, 'id' | 'contextId' | 'status' | 'artifacts'>): Message | undefined {
  const message = finalMessage({ ...task, history: [], metadata: undefined });
  if (message) return { ...message, messageId: replyId(task.id) };
  const completed = task.status?.state === TaskState.TASK_STATE_COMPLETED;
  return completed ? agentMessage(task, replyId(task.id), [textPart('')]) : undefined;
}
