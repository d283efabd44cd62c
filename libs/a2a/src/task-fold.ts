import { ArtifactFold, type EventPayload } from './artifact-fold.js';
import type { Task } from './model.js';

/** A task folded from the events of its log, or from a snapshot and the events after it. */
export class TaskFold {
  private base: Omit<Task, 'artifacts'> = {
    id: '',
    contextId: '',
    status: undefined,
    history: [],
    metadata: undefined,
  };
  private readonly artifacts = new ArtifactFold();

  apply(payload: EventPayload): void {
    this.artifacts.apply(payload);
    if (payload.$case === 'task') this.base = payload.value;
    if (payload.$case !== 'statusUpdate') return;
    const { taskId: id, contextId, status, metadata } = payload.value;
    const { history } = this.base;
    this.base = {
      id,
      contextId,
      status,
      history: status?.message ? [...history, status.message] : history,
      metadata: metadata ? { ...this.base.metadata, ...metadata } : this.base.metadata,
    };
  }

  /** The task after the events so far. Later events may extend its artifacts. */
  task(): Task {
    return { ...this.base, artifacts: this.artifacts.artifacts() };
  }
}
