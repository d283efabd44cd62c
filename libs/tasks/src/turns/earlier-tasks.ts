import type { Agent, Task } from '@baton/a2a';
import type { TaskOrigin } from '@baton/agents';
import { type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { newContextOf } from './new-task.js';

/** Enough for a conversation. */
const DEFAULT_COUNT = 16;
/** Each task is read with its messages. */
const MAX_COUNT = 100;

/** The earlier tasks of a context, as an agent that answers one of its tasks gets them. */
@Injectable()
export class EarlierTasks {
  constructor(private readonly tasks: TaskStore) {}

  /**
   * The newest tasks of the agent in the context of `task`, without those whose journal `task` continues: their messages are its own.
   * @param count how many at most
   */
  async list(
    tenantId: string,
    agent: Agent,
    { id, contextId }: Pick<Task, 'id' | 'contextId'>,
    origin: TaskOrigin | undefined,
    count = DEFAULT_COUNT,
  ): Promise<StoredTask[]> {
    if (contextId === newContextOf(id)) return [];
    const earlier = await this.tasks.listContext(
      tenantId,
      agent.id,
      contextId,
      id,
      Math.min(count, MAX_COUNT),
    );
    return earlier.filter((stored) => origin?.taskIds.includes(stored.task.id) !== true);
  }
}
