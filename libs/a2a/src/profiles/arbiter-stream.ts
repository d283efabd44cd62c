import {
  type Artifact,
  type Message,
  type Task,
  type TaskArtifactUpdateEvent,
  TaskState,
  type TaskStatusUpdateEvent,
} from '../model.js';
import type { StreamItem } from '../operation.js';
import { dataPart, textOf } from '../reply.js';
import { endsTurn, isTerminal } from '../task.js';
import { replyOf, takeApart, textArtifact } from './arbiter-artifacts.js';

/**
 * The frames of one stream as Arbiter's clients expect them. The Task that opens a
 * stream becomes a `working` status, or, if it has ended, the one final status. Text of the reply runs
 * through one artifact, closed by a `lastChunk` before the status that ends the turn.
 */
export class ArbiterStream {
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
