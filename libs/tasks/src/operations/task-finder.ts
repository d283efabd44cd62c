import {
  type CallContext,
  type OperationRules,
  ProtocolError,
  type StreamItem,
  type Task,
  assertWritable,
  canSee,
  conversationHistory,
  historyTail,
  ownTasks,
} from '@baton/a2a';
import { RetentionStore, type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { type TaskWatch, type WatchedEvent } from '../relay/task-watch.js';
import { LogDeletedError } from '../relay/log-deleted-error.js';

/** How many earlier tasks of a context a history goes back. */
const MAX_TASKS = 50;

/** Reads tasks within what a caller may see. */
@Injectable()
export class TaskFinder {
  constructor(
    private readonly tasks: TaskStore,
    private readonly retention: RetentionStore,
  ) {}

  /** The task's id for an id that the caller may have chosen. */
  async idOf(call: CallContext, id: string): Promise<string> {
    const { tenantId, profile, rules, agent } = call;
    if (!rules.clientTaskIds) return id;
    const agentId = rules.taskScope === 'tenant' ? undefined : agent.id;
    const alias = await this.tasks.findAlias({
      tenantId,
      agentId,
      profile,
      clientId: id,
      own: ownTasks(call),
    });
    return alias?.taskId ?? id;
  }

  /**
   * The task, within what the caller reaches: tasks of its tenant that it sees, and of the agent it calls unless its
   * profile has the whole tenant. Anything else is not found, as if it did not exist.
   * @throws ProtocolError `forbidden` for a call that acts on a task which it may only see
   */
  async find(
    call: CallContext,
    id: string,
    options: { historyLength?: number; artifacts?: boolean } = {},
  ): Promise<StoredTask> {
    const taskId = await this.idOf(call, id);
    const stored = await this.reachable(call, taskId, options);
    if (!stored || !isOfCallsAgent(call, stored)) throw await this.notFound(call, id, taskId);
    return stored;
  }

  /**
   * The task of any agent, if the caller sees it.
   * @throws ProtocolError `forbidden` for a call that acts on a task which it may only see
   */
  async reachable(
    call: CallContext,
    taskId: string,
    options: { historyLength?: number; artifacts?: boolean } = {},
  ): Promise<StoredTask | undefined> {
    const stored = await this.tasks.get(call.tenantId, taskId, { ...options, memory: call.memory });
    if (!stored || !canSee(call, stored)) return undefined;
    if (call.access === 'write') assertWritable(call, stored.owner);
    return stored;
  }

  /**
   * The error for a task that is not found. It differs for a task of the caller's that retention deleted.
   * @param id as the caller has it
   * @param taskId the server's
   */
  async notFound(call: CallContext, id: string, taskId: string): Promise<ProtocolError> {
    return (await this.deleted(call, id, taskId)) ?? ProtocolError.taskNotFound(id);
  }

  /** The error for a task that retention has deleted; undefined for any other id. */
  async deleted(call: CallContext, id: string, taskId: string): Promise<ProtocolError | undefined> {
    const tombstone = await this.retention.findTombstone(call.tenantId, taskId);
    if (!tombstone || !canSee(call, tombstone) || !isOfCallsAgent(call, tombstone)) return undefined;
    return ProtocolError.taskNotFound(id, tombstone);
  }

  /**
   * The task with the requested history (A2A 1.0 §3.2.4): its own messages. In some profiles also those of earlier
   * tasks in its context.
   * @param task with its whole history
   */
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

  /** The events of a watch, as they come. If the log is deleted while it is read, the error is that of a deleted task. */
  async *follow(
    call: CallContext,
    id: string,
    watch: TaskWatch,
    ends?: OperationRules['streamEnds'],
  ): AsyncGenerator<WatchedEvent[]> {
    try {
      yield* watch.events(ends);
    } catch (error) {
      if (!(error instanceof LogDeletedError)) throw error;
      throw (await this.deleted(call, id, watch.key.taskId)) ?? error;
    }
  }
}

const isOfCallsAgent = ({ rules, agent }: CallContext, { agentId }: { agentId: string }): boolean =>
  rules.taskScope === 'tenant' || agentId === agent.id;

/** How a stream of a task begins. */
export interface Opening {
  /** The first item: usually the task as it is. */
  first: StreamItem | undefined;
  taskId: string;
  /** Nothing follows. */
  isOver: boolean;
}

/** Takes the first item out of the opening: the stream keeps its opening for hours, and a task may be large. */
export function takeFirst(opening: Opening): StreamItem[] {
  const items = opening.first ? [opening.first] : [];
  opening.first = undefined;
  return items;
}
