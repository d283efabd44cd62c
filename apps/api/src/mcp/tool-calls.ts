import {
  type Codec,
  isTerminal,
  ProtocolError,
  readsOnlyStreams,
  shortened,
  type Task,
  TaskState,
  V1_0_CODEC,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { clock } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { hash } from 'node:crypto';
import { AgentFinder } from '../core/agent-finder.js';
import { logContextOf } from '../http/requests.js';
import { TASK_CANCEL, TASK_STATUS } from './agent-tools.js';
import { complete, type McpCall } from './mcp-call.js';
import { isModelCorrectable, McpError } from './mcp-error.js';
import { McpOperations, taskCall } from './mcp-operations.js';
import { ANSWERING_CODEC, CLOSING_CODEC, MCP_CODEC } from './mcp-profile.js';
import { declaresTasks, type McpRequest } from './mcp-request.js';
import { mcpTask } from './mcp-task.js';
import { type McpCallState, openState, sealState } from './request-state.js';
import {
  inArguments,
  readTaskArgument,
  readToolMessage,
  sendCall,
  type ToolMessage,
} from './tool-arguments.js';
import { ToolStream } from './tool-stream.js';

/** Metadata of a task whose caller has closed the stream of its call. */
const CLOSED = 'mcp.streamClosed';
/** Tasks of one message that were canceled so, before the last one counts as its answer. */
const MAX_CLOSED = 20;

interface ToolSendOptions {
  agent: string;
  codec: Codec;
  returnImmediately?: boolean;
}

/** Tool calls. A tool is an agent, or one of those that show and cancel tasks. */
@Injectable()
export class ToolCalls {
  constructor(
    private readonly operations: McpOperations,
    private readonly finder: AgentFinder,
    private readonly environment: Environment,
  ) {}

  async callTool(call: McpCall): Promise<unknown> {
    const { request, exchange, agent } = call;
    const { name, arguments: given } = request.params;
    if (typeof name !== 'string')
      throw ProtocolError.invalidParams('params.name', 'must be the name of a tool');
    try {
      if (name === TASK_STATUS) return await this.taskTool(call, 'GetTask', readTaskArgument(given));
      if (name === TASK_CANCEL) return await this.taskTool(call, 'CancelTask', readTaskArgument(given));
      if (agent && name !== agent.slug) throw unknownTool(name);
      if (request.isModern && request.params.requestState !== undefined)
        return await this.continueCall(call, name);
      return await this.callAgent(call, name, await this.messageFor(name, call));
    } catch (error) {
      if (error instanceof ProtocolError && !(error instanceof McpError) && error.kind === 'agent-not-found')
        throw new McpError('unknownTool', error.message);
      if (!isModelCorrectable(error) || exchange.reply.sent) throw error;
      logContextOf(exchange.request).errorKind = error.kind;
      return complete(request, { content: [{ type: 'text', text: error.message }], isError: true });
    }
  }

  /** @throws ProtocolError `agent-not-found` also if the arguments are wrong: no other arguments would help */
  private async messageFor(name: string, { request, exchange }: McpCall): Promise<ToolMessage> {
    try {
      return readToolMessage(request.params.arguments, callMeta(request));
    } catch (error) {
      await this.finder.named(callerOf(exchange.request), name);
      throw error;
    }
  }

  /**
   * @param codec how the message was written: by a model, or by a person that the client has asked
   * @returns undefined where a stream has answered
   */
  private async callAgent(
    call: McpCall,
    name: string,
    message: ToolMessage,
    codec: Codec = MCP_CODEC,
  ): Promise<unknown> {
    const { request } = call;
    try {
      if (declaresTasks(request)) {
        const task = await this.send(call, message, { agent: name, codec, returnImmediately: true });
        return { resultType: 'task', ...mcpTask(task, await this.operations.retentionDays(call)) };
      }
      if (wantsStream(call)) {
        await this.streamAgent(call, name, message, codec);
        return undefined;
      }
      return this.answerOf(call, name, await this.send(call, message, { agent: name, codec }));
    } catch (error) {
      if (error instanceof ProtocolError && error.kind === 'agent-not-found') throw unknownTool(name);
      throw inArguments(error, message.parts);
    }
  }

  private async send(call: McpCall, message: ToolMessage, options: ToolSendOptions): Promise<Task> {
    const sent = await this.operations.send(call, message, options);
    return this.unlessClosed(call, sent, message, options);
  }

  /**
   * The task, or another one for the same message if an earlier call of the client was canceled with its stream: a client
   * that sends the message again needs its answer, and gets that other task.
   */
  private async unlessClosed(
    call: McpCall,
    task: Task,
    { message, parts }: ToolMessage,
    options: ToolSendOptions,
  ): Promise<Task> {
    let found = task;
    for (let tries = 0; isClosed(found) && message.taskId === undefined && tries < MAX_CLOSED; tries += 1) {
      const retryKey = hash('sha256', found.id, 'hex');
      const again = { message: { ...message, messageId: retryKey }, parts };
      found = await this.operations.send(call, again, { ...options, retryKey });
    }
    return found;
  }

  /** What a tool call is answered with, once its turn or its wait is over. */
  private answerOf(call: McpCall, tool: string, task: Task): object {
    const { request, exchange } = call;
    const { masterKey } = this.environment;
    const inputRequests = this.operations.elicitationsOf(call, task);
    if (masterKey === undefined || Object.keys(inputRequests).length === 0) {
      return complete(request, this.operations.resultOf(task, exchange));
    }
    const state = { taskId: task.id, ...stateOf(call, tool) };
    const requestState = sealState(state, masterKey, clock.now());
    return { resultType: 'input_required', inputRequests, requestState };
  }

  /** The call comes again with what a person has answered. @returns undefined where a stream has answered */
  private async continueCall(call: McpCall, tool: string): Promise<unknown> {
    const { masterKey } = this.environment;
    const { requestState, inputResponses } = call.request.params;
    const taskId = masterKey && openState(requestState, stateOf(call, tool), masterKey, clock.now());
    if (taskId === undefined) {
      throw new McpError(
        'badMeta',
        'params.requestState: is not that of a call of yours, or too old: call the tool again without it',
      );
    }
    const task = await this.operations.readTask(call, taskId, tool);
    const answer = this.operations.personsAnswer(task, inputResponses);
    if (!answer) return this.answerOf(call, tool, task);
    return this.callAgent(call, tool, answer, ANSWERING_CODEC);
  }

  private async streamAgent(call: McpCall, name: string, message: ToolMessage, codec: Codec): Promise<void> {
    const { request, exchange } = call;
    const made = { again: false };
    const stream = new ToolStream(exchange.reply, request, {
      read: async (taskId) => {
        const task = await this.operations.readTask(call, taskId, name);
        made.again = isClosed(task);
        return this.answerOf(
          call,
          name,
          await this.unlessClosed(call, task, message, { agent: name, codec }),
        );
      },
      complete: (result) => complete(request, result),
    });
    try {
      const opened = { agent: name, codec, stream: () => stream };
      await this.operations.run(call, sendCall('SendStreamingMessage', message), opened);
    } finally {
      const { taskId = stream.task?.id } = logContextOf(exchange.request);
      const isFirst = made.again || (stream.task?.sequence ?? 1) === 1;
      const isMade = message.message.taskId === undefined && isFirst;
      // In this revision a closed stream cancels. In earlier ones a client may come back.
      const isGivenUp = exchange.reply.raw.destroyed && !exchange.reply.raw.writableFinished;
      if (request.isModern && isGivenUp && isMade && taskId !== undefined)
        await this.giveUp(call, taskId, name);
    }
  }

  /** Cancels the task of a caller that has left. It may have ended meanwhile. */
  private async giveUp(call: McpCall, taskId: string, name: string): Promise<void> {
    const cancel = V1_0_CODEC.decode('CancelTask', { id: taskId, metadata: { [CLOSED]: true } });
    await this.operations.run(call, cancel, { agent: name, codec: CLOSING_CODEC }).catch(() => undefined);
  }

  private async taskTool(call: McpCall, method: 'GetTask' | 'CancelTask', taskId: string): Promise<unknown> {
    const task = (await this.operations.run(call, taskCall(method, taskId))) as Task;
    const result = this.operations.resultOf(task, call.exchange);
    const isDone = method === 'CancelTask' && isTerminal(task.status?.state ?? 0);
    // To cancel is what was asked for.
    return complete(call.request, isDone ? { ...result, isError: undefined } : result);
  }
}

/**
 * A client of the modern revision cancels by closing its stream, and a client that waits for progress needs a stream. Others get
 * one JSON object.
 */
function wantsStream({ request: { isModern, meta }, exchange }: McpCall): boolean {
  const { accept } = exchange.request.headers;
  if (accept?.includes('text/event-stream') !== true) return false;
  return isModern || meta.progressToken !== undefined || readsOnlyStreams(accept);
}

/** Claude Code sends a call again under the same id. Programs can send metadata of the message, as they do over A2A. */
function callMeta({ meta }: McpRequest) {
  const id = meta['claudecode/toolUseId'];
  const messageId = typeof id === 'string' && id !== '' && id.length <= 256 ? id : undefined;
  return { messageId, metadata: meta['baton/metadata'] };
}

/** Whether the task was canceled because its caller closed the stream. False if a caller asked for the cancel. */
const isClosed = ({ status, metadata }: Task): boolean =>
  status?.state === TaskState.TASK_STATE_CANCELED && metadata?.[CLOSED] === true;

/** What a state must be of, besides the task. */
function stateOf({ exchange }: McpCall, tool: string): Omit<McpCallState, 'taskId'> {
  const { tenantId, principal } = callerOf(exchange.request);
  return { tool, tenantId, principal: principal.key };
}

const unknownTool = (name: string): McpError =>
  new McpError('unknownTool', `params.name: Unknown tool: ${shortened(name, 64)}: tools/list has the names`);
