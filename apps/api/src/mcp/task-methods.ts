import {
  type ErrorKind,
  type JsonObject,
  OPERATIONS,
  ProtocolError,
  requireScope,
  type Task,
  V1_0_CODEC,
} from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { CallHandler } from '../core/call-handler.js';
import type { McpCall } from './mcp-call.js';
import { McpError } from './mcp-error.js';
import { McpOperations, taskCall } from './mcp-operations.js';
import { ANSWERING_CODEC, MCP_PROFILE, STATUS_CODEC } from './mcp-profile.js';
import { declaresTasks, type McpRequest, TASKS } from './mcp-request.js';
import { detailedTask } from './mcp-task.js';
import { MAX_TASKS, TaskNotices } from './task-notices.js';
import { changesOf, type FollowedTask, isOver, type LentTask } from './task-changes.js';

/** The methods of the extension for tasks. */
@Injectable()
export class TaskMethods {
  constructor(
    private readonly operations: McpOperations,
    private readonly calls: CallHandler,
  ) {}

  async getTask(call: McpCall): Promise<unknown> {
    const task = await this.readResult(call, taskIdIn(call));
    const result = this.operations.resultOf(task, call.exchange);
    const elicitations = this.operations.elicitationsOf(call, task);
    const retentionDays = await this.operations.retentionDays(call);
    return { resultType: 'complete', ...detailedTask(task, { retentionDays, result, elicitations }) };
  }

  async updateTask(call: McpCall): Promise<unknown> {
    const taskId = taskIdIn(call);
    requireScope(OPERATIONS.sendMessage.scopes, callerOf(call.exchange.request).scopes);
    const task = await this.readStatus(call, taskId);
    const answer = this.operations.personsAnswer(task, call.request.params.inputResponses);
    try {
      if (answer)
        await this.operations.send(call, answer, { codec: ANSWERING_CODEC, returnImmediately: true });
    } catch (error) {
      // Another answer came first.
      if (!(error instanceof ProtocolError && ANSWERED.has(error.kind))) throw error;
    }
    return { resultType: 'complete' };
  }

  async cancelTask(call: McpCall): Promise<unknown> {
    try {
      await this.operations.run(call, taskCall('CancelTask', taskIdIn(call)));
    } catch (error) {
      // It is acknowledged as well if the task has ended.
      if (!(error instanceof ProtocolError && error.kind === 'task-not-cancelable')) throw error;
    }
    return { resultType: 'complete' };
  }

  /** Notifies of changes of tasks until all have ended. Nothing else is notified. */
  async listen(call: McpCall): Promise<void> {
    const { request, exchange } = call;
    const taskIds = readTaskIds(request);
    const retentionDays = await this.operations.retentionDays(call);
    const followed: FollowedTask[] = [];
    for (const id of taskIds) {
      const task = await this.readStatus(call, id);
      const items = isOver(task) ? undefined : await this.eventsOf(call, id);
      followed.push({ read: () => this.lendResult(call, id), items });
    }
    const notices = new TaskNotices(exchange.reply, request, taskIds, (task) =>
      detailedTask(task, {
        retentionDays,
        result: this.operations.resultOf(task, exchange),
        elicitations: this.operations.elicitationsOf(call, task),
      }),
    );
    await this.calls.streamFrom((signal) => changesOf(followed, signal), exchange, notices);
  }

  /** The task without its artifacts. */
  private async readStatus(call: McpCall, taskId: string): Promise<Task> {
    const { task, giveBack } = await this.operations.lendTask(call, taskId, { codec: STATUS_CODEC });
    giveBack();
    return task;
  }

  /** The task, with its artifacts if it has ended. Until then nothing shows them, and they may be large. */
  private async readResult(call: McpCall, taskId: string): Promise<Task> {
    const task = await this.readStatus(call, taskId);
    return isOver(task) ? this.operations.readTask(call, taskId) : task;
  }

  /** Reads the result for a stream, which sends more afterwards. `giveBack` frees its memory. */
  private async lendResult(call: McpCall, taskId: string): Promise<LentTask> {
    const task = await this.readStatus(call, taskId);
    return isOver(task) ? this.operations.lendTask(call, taskId) : { task, giveBack: () => undefined };
  }

  private eventsOf({ request, exchange, agent }: McpCall, taskId: string) {
    const call = V1_0_CODEC.decode('SubscribeToTask', { id: taskId });
    const decoded = { profile: MCP_PROFILE, codec: STATUS_CODEC, call, pathAgent: agent?.slug };
    return this.calls.itemsOf({ ...decoded, params: request.params }, exchange);
  }
}

/** Why an answer of a person comes too late. */
const ANSWERED: ReadonlySet<ErrorKind> = new Set(['unsupported-operation', 'task-canceled']);

/** @throws McpError if the client has not declared the extension for tasks */
function assertTasks(request: McpRequest): void {
  if (declaresTasks(request)) return;
  const message = `Missing required client capability: declare the extension ${TASKS}`;
  throw new McpError('missingCapability', message, {
    requiredCapabilities: { extensions: { [TASKS]: {} } },
  });
}

/** The tasks of a subscription, each once. Other notifications are not acknowledged, and not sent. */
function readTaskIds(request: McpRequest): readonly string[] {
  const { notifications } = request.params;
  if (typeof notifications !== 'object' || notifications === null || Array.isArray(notifications))
    throw ProtocolError.invalidParams('params.notifications', 'must be an object');
  const { taskIds } = notifications as JsonObject;
  if (taskIds === undefined) return [];
  assertTasks(request);
  const isList = Array.isArray(taskIds) && taskIds.every((id) => typeof id === 'string');
  if (!isList || taskIds.length > MAX_TASKS) {
    const rule = `must be a list of at most ${MAX_TASKS} ids of tasks`;
    throw ProtocolError.invalidParams('params.notifications.taskIds', rule);
  }
  return [...new Set<string>(taskIds)];
}

/** The task that a method of the extension names. @throws McpError if the client has not declared the extension */
function taskIdIn({ request }: McpCall): string {
  assertTasks(request);
  const { taskId } = request.params;
  if (typeof taskId === 'string') return taskId;
  throw ProtocolError.invalidParams('params.taskId', 'must be the id of a task');
}
