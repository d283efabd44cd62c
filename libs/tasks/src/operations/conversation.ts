import { type CallContext, type Task, conversationHistory, historyTail } from '@baton/a2a';
import { TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** How many earlier tasks of a context a history goes back. */
const MAX_TASKS = 50;

/** Puts what was said earlier in a context in front of a task's history, where a profile's callers expect it. */
@Injectable()
export class Conversation {
  constructor(private readonly tasks: TaskStore) {}

  /** The task with the history that the caller asked for (A2A 1.0 §3.2.4). `task` has its whole history. */
  async withHistory(call: CallContext, task: Task, historyLength: number | undefined): Promise<Task> {
    if (call.rules.history === 'task') {
      return { ...task, history: historyTail(task.history, historyLength) };
    }
    const earlier = await this.tasks.listContext(
      call.tenantId,
      call.agent.id,
      task.contextId,
      task.id,
      MAX_TASKS,
      call.memory,
    );
    const history = [...conversationHistory(earlier.map((stored) => stored.task)), ...task.history];
    return { ...task, history: historyTail(history, historyLength) };
  }
}
