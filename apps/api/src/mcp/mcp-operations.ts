import {
  type Codec,
  type DecodedCall,
  hasScope,
  isStreaming,
  type SendResult,
  shortened,
  type Task,
  ProtocolError,
  V1_0_CODEC,
} from '@baton/a2a';
import { callerOf, LimitsService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { hash } from 'node:crypto';
import { type AnswerWriter, CallHandler } from '../core/call-handler.js';
import { PublicUrl } from '../http/public-url.js';
import type { HttpExchange } from '../http/requests.js';
import { answerParts, type Elicitations, elicitationsOf } from './elicitations.js';
import type { McpCall } from './mcp-call.js';
import { MCP_CODEC, MCP_PROFILE } from './mcp-profile.js';
import { objectAt } from './mcp-request.js';
import type { LentTask } from './task-changes.js';
import { sendCall, type ToolMessage } from './tool-arguments.js';
import { type CallToolResult, toolResult } from './tool-result.js';

interface McpRunOptions {
  agent?: string | undefined;
  codec?: Codec;
  stream?: AnswerWriter['stream'];
  /** Where the answer to the request is a stream. */
  lend?: AnswerWriter['lend'];
  retryKey?: string | undefined;
}

/** Runs the operations of A2A for calls of MCP, and shows tasks in the form of MCP. */
@Injectable()
export class McpOperations {
  constructor(
    private readonly calls: CallHandler,
    private readonly publicUrl: PublicUrl,
    private readonly limits: LimitsService,
  ) {}

  /**
   * Runs an operation as every binding does.
   * @param options `agent`: the agent that the tool names; unset: the agent of the path, or that of the task
   * @returns the result in the model; undefined of a stream
   */
  async run(
    { request, exchange, agent: atPath }: McpCall,
    call: DecodedCall,
    { agent = atPath?.slug, codec = MCP_CODEC, stream, lend, retryKey }: McpRunOptions = {},
  ): Promise<unknown> {
    let answer: unknown;
    const unanswered = (): never => {
      throw new Error('this call is not answered so');
    };
    const writer: AnswerWriter = {
      result: (result) => {
        answer = result;
      },
      error: unanswered,
      stream: stream ?? unanswered,
      lend,
    };
    const { traceparent } = request.meta;
    const decoded = {
      profile: MCP_PROFILE,
      codec,
      call,
      pathAgent: agent,
      params: request.params,
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
      retryKey,
    };
    await this.calls.answer(decoded, exchange, writer);
    return isStreaming(call) ? undefined : answer;
  }

  /** Sends a message to an agent. @returns its task, once the turn or the wait is over */
  async send(
    call: McpCall,
    message: ToolMessage,
    {
      returnImmediately,
      ...options
    }: { agent?: string; codec: Codec; returnImmediately?: boolean; retryKey?: string },
  ): Promise<Task> {
    const sent = await this.run(call, sendCall('SendMessage', message, returnImmediately), options);
    return (sent as SendResult).value as Task;
  }

  readTask(call: McpCall, taskId: string, agent?: string): Promise<Task> {
    return this.run(call, taskCall('GetTask', taskId), { agent }) as Promise<Task>;
  }

  /** A task whose memory the caller gives back, for an answer that is a stream. */
  async lendTask(call: McpCall, taskId: string, options: McpRunOptions = {}): Promise<LentTask> {
    let giveBack = (): void => undefined;
    const lend = (giving: () => void): void => void (giveBack = giving);
    const task = (await this.run(call, taskCall('GetTask', taskId), { ...options, lend })) as Task;
    return { task, giveBack };
  }

  /** What a client may ask a person about a task. Earlier revisions would need a session for it. */
  elicitationsOf({ request, exchange }: McpCall, task: Task): Elicitations {
    if (!request.isModern) return {};
    const mayApprove = hasScope(['tasks:approve'], callerOf(exchange.request).scopes);
    return elicitationsOf(task, { request, mayApprove, consoleUrl: this.consoleUrl(task, exchange) });
  }

  /** The message that answers the task. Undefined if nothing is answered that it waits for. */
  personsAnswer(task: Task, inputResponses: unknown): ToolMessage | undefined {
    const responses = objectAt(inputResponses ?? {}, 'params.inputResponses');
    const parts = answerParts(task, responses);
    if (parts.length === 0) return undefined;
    // The same answer may come again.
    const messageId = hash('sha256', JSON.stringify([task.id, responses]), 'hex');
    return { message: { messageId, taskId: task.id, role: 'ROLE_USER', parts }, parts: [] };
  }

  /** The result of a tool that shows the task. */
  resultOf(task: Task, exchange: HttpExchange): CallToolResult {
    return toolResult(task, this.consoleUrl(task, exchange));
  }

  /** Days until a task that has ended is deleted. Null: never. */
  async retentionDays({ exchange }: McpCall): Promise<number | null> {
    return (await this.limits.get(callerOf(exchange.request).tenantId)).retentionDays;
  }

  private consoleUrl({ id }: Task, { request }: HttpExchange): string {
    return `${this.publicUrl.urlFor(request)}/console/tasks/${id}`;
  }
}

/** Throws `task-not-found` for an id that no task can have. */
export function taskCall(method: 'GetTask' | 'CancelTask', taskId: string): DecodedCall {
  if (taskId === '' || taskId.length > 256) throw ProtocolError.taskNotFound(shortened(taskId, 64));
  return V1_0_CODEC.decode(method, { id: taskId, ...(method === 'GetTask' && { historyLength: 0 }) });
}
