import { type Message, Role, TaskState, type TaskStatus, endsTurn } from '@baton/a2a';
import type { AgentOutput, Turn } from '../../runtime.js';
import { ArtifactMirror } from './artifact-mirror.js';
import type { Redactor } from '../../outbound/redactor.js';
import type { Said } from './remote-calls.js';

/** Turns what the remote agent says of its task into what this agent says of ours. */
export class TaskRelay {
  /** The remote agent has said the last word of this turn. */
  over = false;
  /** Key of the status that this turn's message answers: seen again, it is old. */
  answered: string | undefined;
  private readonly mirror: ArtifactMirror;
  private lastSaid: string | undefined;

  /** @param redactor an agent that fails may quote what it was sent */
  constructor(
    private readonly turn: Turn,
    private readonly redactor: Redactor,
  ) {
    this.mirror = new ArtifactMirror(turn);
  }

  /** What it means for our task. A task is taken as the whole truth: what stands in ours is made to agree. */
  relay(said: Said, isReply: boolean): AgentOutput[] {
    switch (said.$case) {
      case 'artifactUpdate':
        return this.mirror.chunk(said.value);
      case 'statusUpdate':
        return this.status(said.value.status, said.value.metadata);
      case 'task':
        return [
          ...this.mirror.snapshot(said.value.artifacts, this.ends(said.value.status)),
          ...this.status(said.value.status, undefined),
        ];
      case 'message':
        if (!isReply) return this.progress(said.value);
        this.over = true;
        return [{ $case: 'message', value: this.own(said.value) }];
    }
  }

  /** Whether a status is the end of the turn. */
  ends(status: TaskStatus | undefined): boolean {
    return status !== undefined && endsTurn(status.state) && statusKey(status) !== this.answered;
  }

  private status(
    status: TaskStatus | undefined,
    metadata: Record<string, unknown> | undefined,
  ): AgentOutput[] {
    if (!status) return [];
    if (this.ends(status)) {
      this.over = true;
      const message = status.message && this.withoutSecrets(this.own(status.message));
      return [this.update({ ...status, message }, metadata)];
    }
    const isOld = statusKey(status) === this.answered;
    return status.message && !isOld ? this.progress(status.message, metadata) : [];
  }

  /** A word in between. Ours works whatever the remote task's state is called. */
  private progress(message: Message, metadata?: Record<string, unknown>): AgentOutput[] {
    const key = message.messageId || JSON.stringify(message.parts);
    if (key === this.lastSaid) return [];
    this.lastSaid = key;
    const state = TaskState.TASK_STATE_WORKING;
    return [this.update({ state, message: this.own(message), timestamp: undefined }, metadata)];
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

  /** With our ids: those of the remote agent mean nothing here. */
  private own(message: Message): Message {
    const { id: taskId, contextId } = this.turn.task;
    return { ...message, taskId, contextId, role: Role.ROLE_AGENT, referenceTaskIds: [] };
  }
}

/** Tells one status of a task from another. */
export const statusKey = ({ state, timestamp, message }: TaskStatus): string =>
  [state, timestamp ?? '', message?.messageId ?? ''].join(' ');
