import { isEventStream, isJsonObject, type JsonObject } from '@baton/a2a';
import { clock } from '@baton/telemetry';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { createParser } from 'eventsource-parser';
import { headerParams, headerValue, paramHeaders } from './header-params.js';
import { listPages } from './list-pages.js';
import {
  BROKEN,
  McpFailure,
  type McpFailureDetails,
  type McpFailureKind,
  MAX_SAID,
  failureOf,
  httpRefusal,
  silence,
  unreadable,
} from './mcp-failure.js';
import { isTransient, isUnknown, wasNotStarted } from './failure-checks.js';
import { MAX_MESSAGE, progressText } from './progress-text.js';
import { retryFailure } from './retry-failure.js';
import type { RemoteTask } from '../remote-call.js';
import type { ServerCall, ServerConnection } from './server-connection.js';
import type { ListedTool, ToolList } from './tool-list.js';
import { WireAnswers } from './wire-answers.js';
import { objectOf } from '../../wire/json.js';
import { EFFECT_KEY, WireFetch } from './wire-fetch.js';

/** The revision that is spoken. */
const VERSION = '2026-07-28';
/** A server of a revision before it is not silent to an unknown request for longer, in ms. */
const MAX_PROBE_MS = 5_000;
const META = 'io.modelcontextprotocol/';
const CLIENT = { name: 'baton', version: '1.0.0' };
/** Only servers of this revision send these errors. This one: a header differs from the body. */
const HEADER_MISMATCH = -32020;
/** The client lacks a capability that the server needs. */
const MISSING_CAPABILITY = -32021;
/** The server does not support the revision. */
const UNKNOWN_VERSION = -32022;

/** What a call declares that may wait: the server may answer with a task, or ask a person. */
const WAITS = {
  extensions: { [`${META}tasks`]: {} },
  elicitation: { form: {}, url: {} },
};
const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
/** A server makes the ids of its tasks. Each is stored with its call. */
const MAX_TASK_ID = 1_000;
/** Shortest interval between two polls, whatever a server asks for. */
const MIN_INTERVAL_MS = 50;
/** Interval for a server that names none. */
const STANDARD_INTERVAL_MS = 1_000;

export interface ModernCall extends ServerCall {
  mayWait: boolean;
  /** Answers of a person, and the state that goes back to the server. */
  more?: JsonObject;
}

/** An answer to `tools/call`. */
export type CallAnswer =
  | { result: unknown }
  | { task: RemoteTask }
  | { inputRequests: unknown; requestState: string | undefined };

export interface RemoteTaskState {
  status: (typeof STATUSES)[number];
  statusMessage?: string;
  pollIntervalMs: number;
  /** For a completed task: as the server wrote it. */
  result: unknown;
  /** For a failed task: the message of its error. */
  said?: string;
  inputRequests: unknown;
}

export interface ModernConnectionOptions {
  url: string;
  /** Headers of the settings. */
  headers: Readonly<Record<string, string>>;
  send: FetchLike;
  /** Timeouts in milliseconds: of the first request, and of a call without progress. */
  connectTimeout: number;
  timeout: number;
}

interface Request {
  /** The header `Mcp-Name`: the subject of the request. */
  name?: string;
  headers?: Record<string, string>;
  signal: AbortSignal;
  /** The server is asked for progress. Each report restarts the timeout. */
  onProgress?: (text: string) => void;
  /** The server may answer with a task, or ask a person. */
  mayWait?: boolean;
  late?: { setting: 'connectTimeout' | 'timeout'; ms: number };
}

/**
 * An MCP server of revision 2026-07-28 over streamable HTTP. Each request is a POST of its own, and there is no session. So any worker
 * continues where another one has stopped. To end a request is to close its answer.
 */
export class ModernConnection implements ServerConnection {
  readonly era = 'modern';
  instructions: string | undefined;
  private hasTools = true;
  private lastId = 0;

  constructor(private readonly options: ModernConnectionOptions) {}

  /**
   * Asks for the server's revisions.
   * @param isKnown it spoke this revision before: a failure that may pass is no answer
   * @returns `unsure`: it has not answered. It may be a server of an earlier revision that does not answer unknown requests,
   * or busy
   */
  async discover(signal: AbortSignal, isKnown = false): Promise<'modern' | 'older' | 'unsure'> {
    const { connectTimeout } = this.options;
    const ms = isKnown ? connectTimeout : Math.min(connectTimeout, MAX_PROBE_MS);
    const ask = () =>
      this.request('server/discover', {}, { signal, late: { setting: 'connectTimeout', ms } });
    let found: unknown;
    try {
      found = isKnown ? await retryFailure(ask, signal) : await ask();
    } catch (error) {
      signal.throwIfAborted();
      const maySpeak = isTransient(error) || (error instanceof McpFailure && error.kind === 'silent');
      if (isKnown && maySpeak) throw error;
      const { code, data } = (error instanceof McpFailure && error.details.rpc) || {};
      if (code === UNKNOWN_VERSION) return this.speaks((data as JsonObject | undefined)?.supported);
      if (code === HEADER_MISMATCH || code === MISSING_CAPABILITY) throw error;
      return maySpeak ? 'unsure' : 'older';
    }
    const { supportedVersions, capabilities, instructions } = objectOf(found);
    if (!Array.isArray(supportedVersions)) return 'older';
    if (typeof instructions === 'string') this.instructions = instructions;
    // A server that declares nothing is asked. In PHP an empty object is written as a list.
    this.hasTools = !isJsonObject(capabilities) || Boolean(capabilities.tools);
    return this.speaks(supportedVersions);
  }

  private speaks(versions: unknown): 'modern' | 'older' {
    const known = Array.isArray(versions) ? versions.filter((each) => typeof each === 'string') : [];
    if (known.includes(VERSION)) return 'modern';
    // Those before have a handshake, which the other connection makes.
    if (known.some((version) => version < VERSION) || known.length === 0) return 'older';
    const named = known.join(', ').slice(0, 200);
    throw new McpFailure('error', `it supports no version of MCP that Baton supports (${named})`);
  }

  async listTools(list: ToolList, signal: AbortSignal): Promise<void> {
    if (!this.hasTools) return;
    const ask = (params: Record<string, unknown>) =>
      retryFailure(() => this.request('tools/list', params, { signal }), signal);
    await listPages(list, ask);
  }

  /**
   * Calls a tool. When `signal` aborts, the answer is closed, which cancels the call. A call that the server has answered is not made
   * again. `repeat: again` repeats a call once if the connection broke before an answer.
   */
  async send(
    { name, inputSchema }: Pick<ListedTool, 'name' | 'inputSchema'>,
    input: Record<string, unknown>,
    { repeat, key, signal, more, mayWait, report }: ModernCall,
  ): Promise<CallAnswer> {
    const mirrored = headerParams(inputSchema);
    const headers = typeof mirrored === 'string' ? {} : paramHeaders(mirrored, input);
    const params = { name, arguments: input, ...more, _meta: { [EFFECT_KEY]: key } };
    const call = { name, headers, signal, mayWait, onProgress: report ?? (() => undefined) };
    const send = (): Promise<unknown> => this.request('tools/call', params, call);
    let result: unknown;
    try {
      result = await send();
    } catch (error) {
      signal.throwIfAborted();
      if (!wasNotStarted(error) && !(repeat === 'again' && isUnknown(error))) throw error;
      result = await send();
    }
    return answerOf(result, mayWait);
  }

  async readResource(
    uri: string,
    { signal, report }: Pick<ServerCall, 'signal' | 'report'>,
  ): Promise<unknown> {
    const call = { name: uri, signal, onProgress: report ?? (() => undefined) };
    const answer = answerOf(
      await retryFailure(() => this.request('resources/read', { uri }, call), signal),
      false,
    );
    return 'result' in answer ? answer.result : undefined;
  }

  /** Rejects with an McpFailure; `details.rpc.code` is -32602 if there is no such task. */
  async getTask(taskId: string, signal: AbortSignal): Promise<RemoteTaskState> {
    const state = await this.request('tasks/get', { taskId }, { name: taskId, signal, mayWait: true });
    const { status, statusMessage, pollIntervalMs, result, error, inputRequests } = objectOf(state);
    const known = STATUSES.find((each) => each === status);
    if (!known) throw unreadable(JSON.stringify(state));
    const { message } = objectOf(error);
    return {
      status: known,
      pollIntervalMs: intervalOf(pollIntervalMs),
      ...(typeof statusMessage === 'string' && { statusMessage: statusMessage.slice(0, MAX_MESSAGE) }),
      ...(typeof message === 'string' && { said: message.slice(0, MAX_SAID) }),
      result,
      inputRequests,
    };
  }

  /** Sends answers of a person. An answer that comes twice counts once. */
  async updateTask(taskId: string, inputResponses: JsonObject, signal: AbortSignal): Promise<void> {
    const params = { taskId, inputResponses };
    await retryFailure(
      () => this.request('tasks/update', params, { name: taskId, signal, mayWait: true }),
      signal,
    );
  }

  async cancelTask(taskId: string, signal: AbortSignal): Promise<void> {
    await this.request('tasks/cancel', { taskId }, { name: taskId, signal, mayWait: true });
  }

  /** There is nothing to end: no request is open between calls. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  /** @returns the result, which may be any JSON value */
  private async request(
    method: string,
    params: Record<string, unknown>,
    {
      name,
      headers = {},
      signal,
      onProgress,
      mayWait = false,
      late = { setting: 'timeout', ms: this.options.timeout },
    }: Request,
  ): Promise<unknown> {
    const id = ++this.lastId;
    const meta = {
      ...(params._meta as object | undefined),
      [`${META}protocolVersion`]: VERSION,
      [`${META}clientInfo`]: CLIENT,
      [`${META}clientCapabilities`]: mayWait ? WAITS : {},
      ...(onProgress && { progressToken: id }),
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } });
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), late.ms);
    const wire = new WireFetch(this.options.send, new WireAnswers(), true);
    try {
      const response = await wire.fetch(this.options.url, {
        method: 'POST',
        headers: {
          ...this.options.headers,
          ...headers,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'mcp-protocol-version': VERSION,
          'mcp-method': method,
          ...(name !== undefined && { 'mcp-name': headerValue(name) }),
        },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([signal, ended.signal]),
      });
      if (!response.ok) throw httpRefusal(response.status);
      for await (const message of messagesIn(response)) {
        if (message.method === 'notifications/progress') {
          timer.refresh();
          const text = progressText(objectOf(message.params));
          if (text !== undefined) onProgress?.(text);
        }
        if (message.id === id) return resultIn(message);
      }
      throw BROKEN;
    } catch (error) {
      signal.throwIfAborted();
      if (ended.signal.aborted) throw silence(late.setting, late.ms);
      throw failureOf(error) ?? error;
    } finally {
      clearTimeout(timer);
      ended.abort();
    }
  }
}

function answerOf(result: unknown, mayWait: boolean): CallAnswer {
  const { resultType = 'complete', ...value } = objectOf(result);
  if (resultType === 'complete') return { result };
  if (mayWait && resultType === 'input_required') {
    const { inputRequests, requestState } = value;
    return { inputRequests, requestState: typeof requestState === 'string' ? requestState : undefined };
  }
  const { taskId, ttlMs, pollIntervalMs } = value;
  if (mayWait && resultType === 'task' && typeof taskId === 'string' && taskId.length <= MAX_TASK_ID) {
    const kept = typeof ttlMs === 'number' && ttlMs >= 0 ? ttlMs : null;
    const receivedAt = clock.date().toISOString();
    return { task: { taskId, receivedAt, ttlMs: kept, pollIntervalMs: intervalOf(pollIntervalMs) } };
  }
  const type = String(resultType).slice(0, 40);
  throw new McpFailure(
    'unreadable',
    `it answers with a result of the type "${type}", which Baton did not ask for`,
  );
}

const intervalOf = (ms: unknown): number =>
  typeof ms === 'number' && ms >= 0 ? Math.max(ms, MIN_INTERVAL_MS) : STANDARD_INTERVAL_MS;

interface WireMessage {
  id?: unknown;
  method?: string;
  params?: unknown;
  result?: { value?: unknown };
  error?: { data?: { kind: McpFailureKind; message: string; details: McpFailureDetails } };
}

/** The messages of a response that WireFetch has rewritten. */
async function* messagesIn(response: Response): AsyncGenerator<WireMessage> {
  if (!isEventStream(response.headers.get('content-type'))) {
    const text = await response.text();
    if (response.status === 202 || text === '') throw unreadable('');
    // oxlint-disable-next-line no-restricted-properties -- WireFetch wrote it
    return yield* JSON.parse(text) as WireMessage[];
  }
  const read: WireMessage[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      // oxlint-disable-next-line no-restricted-properties -- WireFetch wrote it
      if (data !== '') read.push(JSON.parse(data) as WireMessage);
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }));
    yield* read.splice(0);
  }
}

function resultIn({ result, error }: WireMessage): unknown {
  if (!error) return result?.value;
  const { kind = 'error', message = 'it answers with an error', details = {} } = error.data ?? {};
  throw new McpFailure(kind, message, details);
}
