import {
  type Agent,
  answerJson,
  type Codec,
  type DecodedCall,
  decodeEnvelope,
  encodeEnvelope,
  encodeErrorEnvelope,
  EnvelopeError,
  type ErrorKind,
  hasScope,
  isAllowed,
  isStreaming,
  isTerminal,
  type JsonObject,
  listedAgent,
  type ListedAgent,
  OPERATIONS,
  ProtocolError,
  readsOnlyStreams,
  requireScope,
  type SendResult,
  shortened,
  type Task,
  TaskState,
  V1_0_CODEC,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf, LimitsService } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { clock } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hash } from 'node:crypto';
import { AgentFinder } from '../core/agent-finder.js';
import { type AnswerWriter, CallHandler } from '../core/call-handler.js';
import { BodyReader } from '../http/body-reader.js';
import { CallerLeft } from '../http/caller-left.js';
import { setErrorHeaders } from '../http/errors.js';
import { PublicUrl } from '../http/public-url.js';
import { type HttpExchange, logContextOf } from '../http/requests.js';
import { agentTool, CANCEL_TOOL, STATUS_TOOL, TASK_CANCEL, TASK_STATUS, type Tool } from './agent-tools.js';
import { answerParts, type Elicitations, elicitationsOf } from './elicitations.js';
import { encodeMcpError, isForTheModel, McpError } from './mcp-error.js';
import { ANSWERING_CODEC, CLOSING_CODEC, MCP_CODEC, MCP_PROFILE, STATUS_CODEC } from './mcp-profile.js';
import {
  declares,
  MODERN,
  negotiated,
  type McpRequest,
  objectAt,
  readRequest,
  TASKS,
  VERSIONS,
} from './mcp-request.js';
import { detailedTask, mcpTask } from './mcp-task.js';
import { RESOURCE_TEMPLATES, TaskResources } from './task-resources.js';
import {
  changesOf,
  type FollowedTask,
  isOver,
  type LentTask,
  MAX_TASKS,
  TaskNotices,
} from './task-notices.js';
import { type McpCallState, openState, sealState } from './request-state.js';
import {
  inArguments,
  readTaskArgument,
  readToolMessage,
  sendCall,
  type ToolMessage,
} from './tool-arguments.js';
import { type CallToolResult, toolResult } from './tool-result.js';
import { ToolStream } from './tool-stream.js';

const JSON_TYPE = 'application/json; charset=utf-8';
const SERVER = { name: 'baton', title: 'Baton', version: '1' };
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
/** How long a client may keep a list. */
const LIST_TTL_MS = 30_000;
const PAGE = 100;
/** Metadata of a task whose caller has closed the stream of its call. */
const CLOSED = 'mcp.streamClosed';
/** Tasks of one message that were canceled so, before the last one counts as its answer. */
const MAX_CLOSED = 20;

const INSTRUCTIONS =
  'Each tool is an agent. A call becomes a task, which goes on if you disconnect. A call that takes long returns a taskId: ' +
  `${TASK_STATUS} shows the task, ${TASK_CANCEL} cancels it. Send the contextId of a result to go on with a conversation.`;

/** A request, where it goes and who has sent it. */
interface McpCall {
  readonly request: McpRequest;
  readonly exchange: HttpExchange;
  /** The agent that the path names. */
  readonly agent: Agent | undefined;
}

interface McpRunOptions {
  agent?: string | undefined;
  codec?: Codec;
  stream?: AnswerWriter['stream'];
  /** Where the answer to the request is a stream that goes on. */
  lend?: AnswerWriter['lend'];
  retryKey?: string | undefined;
}

type Method = (call: McpCall) => Promise<unknown>;

/**
 * Maps a request of MCP to operations and back. If several things are wrong, the first of these is answered: URL and HTTP
 * method (404, 405), token (401), requests per second (429), Origin (403), media type (415), size (413), JSON and envelope
 * (400), what `readRequest` checks, the agent of the path (404), method, params, and then what `CallResolver` checks.
 */
@Injectable()
export class McpHandler {
  private readonly modern: Readonly<Record<string, Method>>;
  private readonly legacy: Readonly<Record<string, Method>>;

  constructor(
    private readonly bodies: BodyReader,
    private readonly calls: CallHandler,
    private readonly finder: AgentFinder,
    private readonly directory: AgentDirectory,
    private readonly publicUrl: PublicUrl,
    private readonly limits: LimitsService,
    private readonly environment: Environment,
    private readonly resources: TaskResources,
  ) {
    const shared: Record<string, Method> = {
      'tools/list': (call) => this.listTools(call),
      'tools/call': (call) => this.callTool(call),
      'resources/list': async ({ request }) => listed(request, { resources: [] }),
      'resources/templates/list': async ({ request }) =>
        listed(request, { resourceTemplates: RESOURCE_TEMPLATES }),
      'resources/read': (call) => this.readResource(call),
    };
    this.modern = {
      ...shared,
      'server/discover': async () => this.discover(),
      'tasks/get': (call) => this.getTask(call),
      'tasks/update': (call) => this.updateTask(call),
      'tasks/cancel': (call) => this.cancelTask(call),
      'subscriptions/listen': (call) => this.listen(call),
    };
    this.legacy = {
      ...shared,
      initialize: async ({ request }) => this.initialize(request),
      ping: async () => ({}),
    };
  }

  /** Answers one request. Never rejects: every failure becomes an answer, unless the caller has disconnected. */
  async handle(pathAgent: string | undefined, exchange: HttpExchange): Promise<void> {
    const { request: http, reply } = exchange;
    let id: McpRequest['id'] | undefined;
    try {
      this.assertOrigin(http);
      const envelope = decodeEnvelope(await this.bodies.text(http, 'standard', ['application/json']));
      id = envelope.id ?? undefined;
      logContextOf(http).rpcMethod = shortened(envelope.method, 64);
      if (!envelope.hasId) {
        acceptNotification(envelope.method, reply);
        return;
      }
      const request = readRequest(envelope, http.headers);
      const agent = pathAgent === undefined ? undefined : await this.finder.named(callerOf(http), pathAgent);
      const methods = request.isModern ? this.modern : this.legacy;
      const method = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined;
      if (!method) throw unknownMethod(request);
      const result = await method({ request, exchange, agent });
      // A stream has answered by itself.
      if (!reply.sent) sendJson(reply, 200, encodeEnvelope(request.id, result));
    } catch (error) {
      if (reply.raw.headersSent || error instanceof CallerLeft) return;
      const known = error instanceof EnvelopeError ? (error.id ?? undefined) : id;
      this.calls.fail(error, exchange, { error: (failure) => sendMcpError(http, reply, failure, known) });
    }
  }

  /** Web pages of other origins must not call what only the network protects. Programs send no Origin. */
  private assertOrigin({ headers: { origin } }: FastifyRequest): void {
    if (origin === undefined) return;
    const { corsOrigins } = this.environment;
    const isKnown = corsOrigins.includes('*') || corsOrigins.includes(origin);
    if (isKnown || origin === new URL(this.publicUrl.value).origin) return;
    throw new McpError(
      'foreignOrigin',
      `Origin: ${shortened(origin, 128)} may not call: the operator can add it to CORS_ORIGINS`,
    );
  }

  private initialize({ params }: McpRequest): unknown {
    const { protocolVersion } = params;
    return {
      protocolVersion: negotiated(protocolVersion),
      capabilities: { tools: {}, resources: {} },
      serverInfo: SERVER,
      instructions: INSTRUCTIONS,
    };
  }

  private discover(): unknown {
    return {
      resultType: 'complete',
      supportedVersions: VERSIONS,
      capabilities: { tools: {}, resources: {}, extensions: { [TASKS]: {} } },
      instructions: INSTRUCTIONS,
      ttlMs: LIST_TTL_MS,
      cacheScope: 'private',
      _meta: { [SERVER_INFO]: SERVER },
    };
  }

  /** The agents that the caller may call, by slug, and the tools for tasks on the first page. */
  private async listTools({ request, exchange, agent }: McpCall): Promise<unknown> {
    const { tenantId, scopes, agents } = callerOf(exchange.request);
    const after = readCursor(request.params.cursor);
    const mayCall = hasScope(['agents:call'], scopes);
    const found: readonly ListedAgent[] = agent ? [listedAgent(agent)] : await this.directory.list(tenantId);
    const callable = found
      .filter((each) => mayCall && each.status === undefined && isAllowed(agents, each) && each.slug > after)
      .sort((a, b) => (a.slug < b.slug ? -1 : 1));
    const page = callable.slice(0, PAGE);
    const ofTasks: Tool[] = after === '' ? [STATUS_TOOL, ...(mayCall ? [CANCEL_TOOL] : [])] : [];
    const last = callable.length > PAGE ? page.at(-1) : undefined;
    return listed(request, {
      tools: [...ofTasks, ...page.map(agentTool)],
      ...(last && { nextCursor: Buffer.from(last.slug).toString('base64url') }),
    });
  }

  private async readResource({ request, exchange, agent }: McpCall): Promise<unknown> {
    const { uri } = request.params;
    if (typeof uri !== 'string')
      throw ProtocolError.invalidParams('params.uri', 'must be the address of a resource');
    const contents = await this.resources.read(uri, request, { exchange, pathAgent: agent?.slug });
    // The agent may still be at work.
    return listed(request, { contents }, 0);
  }

  private async callTool(call: McpCall): Promise<unknown> {
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
      if (!isForTheModel(error) || exchange.reply.sent) throw error;
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
      if (declares(request, TASKS)) {
        const task = await this.send(call, message, { agent: name, codec, returnImmediately: true });
        return { resultType: 'task', ...mcpTask(task, await this.retentionDays(call)) };
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

  private async send(
    call: McpCall,
    message: ToolMessage,
    options: { agent?: string; codec: Codec; returnImmediately?: boolean },
  ): Promise<Task> {
    const { returnImmediately, ...ran } = options;
    const sent = await this.run(call, sendCall('SendMessage', message, returnImmediately), ran);
    return this.unlessClosed(call, (sent as SendResult).value as Task, message, options);
  }

  /**
   * The task, or another one for the same message if an earlier call of the client was canceled with its stream: the client wants
   * the answer after all. A client that sends the message again gets that other task.
   */
  private async unlessClosed(
    call: McpCall,
    task: Task,
    { message, parts }: ToolMessage,
    { returnImmediately, ...ran }: { agent?: string; codec: Codec; returnImmediately?: boolean },
  ): Promise<Task> {
    let found = task;
    for (let tries = 0; isClosed(found) && message.taskId === undefined && tries < MAX_CLOSED; tries += 1) {
      const retryKey = hash('sha256', found.id, 'hex');
      const again = sendCall(
        'SendMessage',
        { message: { ...message, messageId: retryKey }, parts },
        returnImmediately,
      );
      found = ((await this.run(call, again, { ...ran, retryKey })) as SendResult).value as Task;
    }
    return found;
  }

  /** What a call of a tool is answered with, once its turn or its wait is over. */
  private answerOf(call: McpCall, tool: string, task: Task): object {
    const { request, exchange } = call;
    const { masterKey } = this.environment;
    const inputRequests = this.elicitationsOf(call, task);
    if (masterKey === undefined || Object.keys(inputRequests).length === 0) {
      return complete(request, this.resultOf(task, exchange));
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
    const task = await this.readTask(call, taskId, tool);
    const answer = this.personsAnswer(task, inputResponses);
    if (!answer) return this.answerOf(call, tool, task);
    return this.callAgent(call, tool, answer, ANSWERING_CODEC);
  }

  /** What a client may ask a person about a task. Earlier revisions would need a session for it. */
  private elicitationsOf({ request, exchange }: McpCall, task: Task): Elicitations {
    if (!request.isModern) return {};
    const mayApprove = hasScope(['tasks:approve'], callerOf(exchange.request).scopes);
    return elicitationsOf(task, { request, mayApprove, consoleUrl: this.consoleUrl(task, exchange) });
  }

  /** The message that answers the task. Undefined if nothing is answered that it waits for. */
  private personsAnswer(task: Task, inputResponses: unknown): ToolMessage | undefined {
    const responses = objectAt(inputResponses ?? {}, 'params.inputResponses');
    const parts = answerParts(task, responses);
    if (parts.length === 0) return undefined;
    // The same answer may come again.
    const messageId = hash('sha256', JSON.stringify([task.id, responses]), 'hex');
    return { message: { messageId, taskId: task.id, role: 'ROLE_USER', parts }, parts: [] };
  }

  private async getTask(call: McpCall): Promise<unknown> {
    const task = await this.readResult(call, taskIdIn(call));
    const result = this.resultOf(task, call.exchange);
    const elicitations = this.elicitationsOf(call, task);
    const retentionDays = await this.retentionDays(call);
    return { resultType: 'complete', ...detailedTask(task, { retentionDays, result, elicitations }) };
  }

  private async updateTask(call: McpCall): Promise<unknown> {
    const taskId = taskIdIn(call);
    requireScope(OPERATIONS.sendMessage.scopes, callerOf(call.exchange.request).scopes);
    const task = await this.readStatus(call, taskId);
    const answer = this.personsAnswer(task, call.request.params.inputResponses);
    try {
      if (answer) await this.send(call, answer, { codec: ANSWERING_CODEC, returnImmediately: true });
    } catch (error) {
      // Another answer came first.
      if (!(error instanceof ProtocolError && ANSWERED.has(error.kind))) throw error;
    }
    return { resultType: 'complete' };
  }

  private async cancelTask(call: McpCall): Promise<unknown> {
    try {
      await this.run(call, taskCall('CancelTask', taskIdIn(call)));
    } catch (error) {
      // It is acknowledged as well if the task has ended.
      if (!(error instanceof ProtocolError && error.kind === 'task-not-cancelable')) throw error;
    }
    return { resultType: 'complete' };
  }

  /** Notifies of changes of tasks until all have ended. Nothing else is notified. */
  private async listen(call: McpCall): Promise<void> {
    const { request, exchange } = call;
    const taskIds = readTaskIds(request);
    const retentionDays = await this.retentionDays(call);
    const followed: FollowedTask[] = [];
    for (const id of taskIds) {
      const task = await this.readStatus(call, id);
      const items = isOver(task) ? undefined : await this.eventsOf(call, id);
      followed.push({ read: () => this.lendResult(call, id), items });
    }
    const notices = new TaskNotices(exchange.reply, request, taskIds, (task) =>
      detailedTask(task, {
        retentionDays,
        result: this.resultOf(task, exchange),
        elicitations: this.elicitationsOf(call, task),
      }),
    );
    await this.calls.streamFrom((signal) => changesOf(followed, signal), exchange, notices);
  }

  /** The task without its artifacts. */
  private async readStatus(call: McpCall, taskId: string): Promise<Task> {
    const { task, giveBack } = await this.lendTask(call, taskId, { codec: STATUS_CODEC });
    giveBack();
    return task;
  }

  /** The task, with its artifacts if it has ended. Until then nothing shows them, and they may be large. */
  private async readResult(call: McpCall, taskId: string): Promise<Task> {
    const task = await this.readStatus(call, taskId);
    return isOver(task) ? this.readTask(call, taskId) : task;
  }

  /** The same for a stream, which goes on afterwards. */
  private async lendResult(call: McpCall, taskId: string): Promise<LentTask> {
    const task = await this.readStatus(call, taskId);
    return isOver(task) ? this.lendTask(call, taskId) : { task, giveBack: () => undefined };
  }

  private async lendTask(call: McpCall, taskId: string, options: McpRunOptions = {}): Promise<LentTask> {
    let giveBack = (): void => undefined;
    const lend = (giving: () => void): void => void (giveBack = giving);
    const task = (await this.run(call, taskCall('GetTask', taskId), { ...options, lend })) as Task;
    return { task, giveBack };
  }

  private eventsOf({ request, exchange, agent }: McpCall, taskId: string) {
    const call = V1_0_CODEC.decode('SubscribeToTask', { id: taskId });
    const decoded = { profile: MCP_PROFILE, codec: STATUS_CODEC, call, pathAgent: agent?.slug };
    return this.calls.itemsOf({ ...decoded, params: request.params }, exchange);
  }

  private async retentionDays({ exchange }: McpCall): Promise<number | null> {
    return (await this.limits.of(callerOf(exchange.request).tenantId)).retentionDays;
  }

  private async streamAgent(call: McpCall, name: string, message: ToolMessage, codec: Codec): Promise<void> {
    const { request, exchange } = call;
    const made = { again: false };
    const stream = new ToolStream(exchange.reply, request, {
      read: async (taskId) => {
        const task = await this.readTask(call, taskId, name);
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
      await this.run(call, sendCall('SendStreamingMessage', message), opened);
    } finally {
      const { taskId = stream.task?.id } = logContextOf(exchange.request);
      const isFirst = made.again || (stream.task?.sequence ?? 1) === 1;
      const isMade = message.message.taskId === undefined && isFirst;
      // The revision says that a closed stream cancels. In earlier ones a client may come back.
      const isGivenUp = exchange.reply.raw.destroyed && !exchange.reply.raw.writableFinished;
      if (request.isModern && isGivenUp && isMade && taskId !== undefined)
        await this.giveUp(call, taskId, name);
    }
  }

  /** Cancels the task of a caller that has left. It may have ended meanwhile. */
  private async giveUp(call: McpCall, taskId: string, name: string): Promise<void> {
    const cancel = V1_0_CODEC.decode('CancelTask', { id: taskId, metadata: { [CLOSED]: true } });
    await this.run(call, cancel, { agent: name, codec: CLOSING_CODEC }).catch(() => undefined);
  }

  private async taskTool(call: McpCall, method: 'GetTask' | 'CancelTask', taskId: string): Promise<unknown> {
    const task = (await this.run(call, taskCall(method, taskId))) as Task;
    const result = this.resultOf(task, call.exchange);
    const isDone = method === 'CancelTask' && isTerminal(task.status?.state ?? 0);
    // To cancel is what was asked for.
    return complete(call.request, isDone ? { ...result, isError: undefined } : result);
  }

  private readTask(call: McpCall, taskId: string, agent?: string): Promise<Task> {
    return this.run(call, taskCall('GetTask', taskId), { agent }) as Promise<Task>;
  }

  private resultOf(task: Task, exchange: HttpExchange): CallToolResult {
    return toolResult(task, this.consoleUrl(task, exchange));
  }

  private consoleUrl({ id }: Task, { request }: HttpExchange): string {
    return `${this.publicUrl.of(request)}/console/tasks/${id}`;
  }

  /**
   * Runs an operation as every binding does.
   * @param options `agent`: the agent that the tool names; unset: the agent of the path, or that of the task
   * @returns the result in the model; undefined of a stream
   */
  private async run(
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
}

/**
 * Writes an error in the form of MCP.
 * @param id unset: it is not known. Then it is null as in JSON-RPC: the Python SDK reads no error without the member
 */
export function sendMcpError(
  request: FastifyRequest,
  reply: FastifyReply,
  failure: ProtocolError,
  id?: McpRequest['id'],
): void {
  const { http, error } = encodeMcpError(failure);
  logContextOf(request).rpcError = error.code;
  setErrorHeaders(reply, failure);
  const isWhole = failure.kind === 'parse' || failure.kind === 'invalid-request';
  sendJson(reply, isWhole ? 400 : http, encodeErrorEnvelope(id ?? null, error));
}

function sendJson(reply: FastifyReply, status: number, body: object): void {
  reply.status(status).header('content-type', JSON_TYPE).send(answerJson(body));
}

/** A notification is accepted, and nothing of it is needed: there are no sessions, and a request ends with its connection. */
function acceptNotification(method: string, reply: FastifyReply): void {
  if (!method.startsWith('notifications/')) throw new McpError('badRequest', 'id: is required in a request');
  reply.status(202).send();
}

/** A list, or what it names, as the client's revision has it. @param ttlMs how long the client may keep it */
const listed = ({ isModern }: McpRequest, result: object, ttlMs = LIST_TTL_MS): object => ({
  ...(isModern && { resultType: 'complete', ttlMs, cacheScope: 'private' }),
  ...result,
});

/** A result of a tool as the client's revision has it. */
const complete = (
  { isModern }: McpRequest,
  result: Omit<CallToolResult, '_meta' | 'isError'> & { isError?: boolean | undefined },
): object => ({ ...(isModern && { resultType: 'complete' }), ...result });

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

/** Why an answer of a person comes too late. */
const ANSWERED: ReadonlySet<ErrorKind> = new Set(['unsupported-operation', 'task-canceled']);

/** What a state must be of, besides the task. */
function stateOf({ exchange }: McpCall, tool: string): Omit<McpCallState, 'taskId'> {
  const { tenantId, principal } = callerOf(exchange.request);
  return { tool, tenantId, principal: principal.key };
}

/** @throws McpError if the client has not declared the extension for tasks */
function assertTasks(request: McpRequest): void {
  if (declares(request, TASKS)) return;
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

function taskCall(method: 'GetTask' | 'CancelTask', taskId: string): DecodedCall {
  if (taskId === '' || taskId.length > 256) throw ProtocolError.taskNotFound(shortened(taskId, 64));
  return V1_0_CODEC.decode(method, { id: taskId, ...(method === 'GetTask' && { historyLength: 0 }) });
}

/** The slug after which a page begins. */
function readCursor(cursor: unknown): string {
  if (cursor === undefined || cursor === null) return '';
  const slug = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : '';
  if (slug !== '' && Buffer.from(slug).toString('base64url') === cursor) return slug;
  throw ProtocolError.invalidParams(
    'params.cursor',
    'must be the nextCursor of an earlier page, or left out',
  );
}

const unknownTool = (name: string): McpError =>
  new McpError('unknownTool', `params.name: Unknown tool: ${shortened(name, 64)}: tools/list has the names`);

function unknownMethod({ method, isModern }: McpRequest): ProtocolError {
  const message = `Method not found: ${shortened(method, 128)}`;
  if (isModern) return new McpError('unknownMethod', message, { version: MODERN });
  return ProtocolError.methodNotFound(method);
}
