import { type Message, Role, TaskState, type TaskStatus, endsTurn } from '@baton/a2a';
import { fromAgent } from '../../agent-metadata.js';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import { ArtifactMirror } from './artifact-mirror.js';
import type { Redactor } from '../../outbound/redactor.js';
import type { Said } from './remote-calls.js';

/** Translates events of the remote task into events of this task. */
export class EventTranslator {
  /** Whether the remote agent has ended the turn. */
  isOver = false;
  /** Key of the status that this turn's message answers. It is ignored when the remote agent sends it again. */
  answeredStatus: string | undefined;
  private readonly mirror: ArtifactMirror;
  private lastSaid: string | undefined;

  /** @param redactor removes secrets: a failing agent may quote its request */
  constructor(
    private readonly turn: Turn,
    private readonly redactor: Redactor,
  ) {
    this.mirror = new ArtifactMirror(turn);
  }

  /** Translates one event. A remote task is a full snapshot: this task's artifacts are corrected to match it. */
  translate(event: Said, isReply: boolean): AgentOutput[] {
    return this.outputsOf(event, isReply).map(fromAgent);
  }

  private outputsOf(event: Said, isReply: boolean): AgentOutput[] {
    switch (event.$case) {
      case 'artifactUpdate':
        return this.mirror.chunk(event.value);
      case 'statusUpdate':
        return this.status(event.value.status, event.value.metadata);
      case 'task':
        return [
          ...this.mirror.snapshot(event.value.artifacts, this.ends(event.value.status)),
          ...this.status(event.value.status, undefined),
        ];
      case 'message':
        if (!isReply) return this.progress(event.value);
        this.isOver = true;
        return [{ $case: 'message', value: this.asOwn(event.value) }];
    }
  }

  /** Whether a status ends the turn. */
  ends(status: TaskStatus | undefined): boolean {
    return status !== undefined && endsTurn(status.state) && statusKey(status) !== this.answeredStatus;
  }

  private status(
    status: TaskStatus | undefined,
    metadata: Record<string, unknown> | undefined,
  ): AgentOutput[] {
    if (!status) return [];
    if (this.ends(status)) {
      this.isOver = true;
      const message = status.message && this.withoutSecrets(this.asOwn(status.message));
      return [this.update({ ...status, message }, metadata)];
    }
    const isOld = statusKey(status) === this.answeredStatus;
    return status.message && !isOld ? this.progress(status.message, metadata) : [];
  }

  /** A progress message. This task stays `working` in every state of the remote task. */
  private progress(message: Message, metadata?: Record<string, unknown>): AgentOutput[] {
    const key = message.messageId || JSON.stringify(message.parts);
    if (key === this.lastSaid) return [];
    this.lastSaid = key;
    const state = TaskState.TASK_STATE_WORKING;
    return [this.update({ state, message: this.asOwn(message), timestamp: undefined }, metadata)];
  }

  private update(status: TaskStatus, metadata: Record<string, unknown> | undefined): AgentOutput {
    const { id: taskId, contextId } = this.turn.task;
    return { $case: 'statusUpdate', value: { taskId, contextId, status, metadata } };
  }

  private withoutSecrets(message: Message): Message {
    const parts = message.parts.map((part) =>
      part.content?.$case === 'text'
        ? { ...part, content: { ...part.content, value: this.redactor.text(part.content.value) } }
        : part,
    );
    return { ...message, parts };
  }

  /** Replaces the remote ids by the ids of this task. */
  private asOwn(message: Message): Message {
    const { id: taskId, contextId } = this.turn.task;
    return { ...message, taskId, contextId, role: Role.ROLE_AGENT, referenceTaskIds: [] };
  }
}

/** A key that differs for each status of a task. */
export const statusKey = ({ state, timestamp, message }: TaskStatus): string =>
  [state, timestamp ?? '', message?.messageId ?? ''].join(' ');
