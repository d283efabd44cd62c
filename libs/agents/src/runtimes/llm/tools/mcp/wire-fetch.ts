import { decodeText, isEventStream, jsonExcess, parseBoundedJson, type JsonObject } from '@baton/a2a';
import { OutboundRefused } from '@baton/outbound';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { createParser } from 'eventsource-parser';
import { beginningOf } from '../../../../outbound/beginning-of.js';
import { wellFormedRequest } from '../../../../outbound/well-formed-request.js';
import {
  BROKEN,
  MAX_SAID,
  McpFailure,
  httpRefusal,
  textOfPage,
  unreadable,
  type McpFailureDetails,
} from './mcp-failure.js';
import type { RequestId, WireAnswers } from './wire-answers.js';

/** The effect key of a call in its `_meta`. MCP itself has no member for it. */
export const EFFECT_KEY = 'baton/effectKey';

const CUT = new McpFailure(
  'cut',
  'the connection broke in the middle of its answer, so its result is not known',
);

/**
 * The fetch of an MCP connection. It reads answers with WireAnswers, so that each request gets one: also if the stream of a
 * response ends early, where the SDK would wait until the request times out. It also tracks the notifications that are being sent.
 */
export class WireFetch {
  /** Why the first GET got no stream. The SDK does not report it. */
  refusal: McpFailure | undefined;
  private hasStream = false;
  private readonly notifying = new Set<Promise<unknown>>();

  /** @param answersByPost the answer to a request is in the response to its POST */
  constructor(
    private readonly send: FetchLike,
    private readonly answers: WireAnswers,
    private readonly answersByPost: boolean,
  ) {}

  /** Resolves when all notifications have been delivered or have failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.notifying);
  }

  readonly fetch: FetchLike = async (url, init) => {
    const isPost = init?.method === 'POST';
    const message = isPost ? sentMessage(init.body) : undefined;
    const id = message && this.answers.sent(message);
    const sending = this.send(url, wellFormedRequest(withIdempotencyKey(init, message)));
    if (isPost && id === undefined) this.follow(sending);
    const response = await sending;
    const { status } = response;
    const isRedirect = status >= 300 && status < 400;
    if (init?.method === 'DELETE' || isRedirect) return response;
    const hadSession = new Headers(init?.headers).has('mcp-session-id');
    if (!isPost) return this.stream(response, hadSession);
    if (!response.ok) throw await refusalOf(response, hadSession);
    if (id === undefined || !this.answersByPost || status === 202) return response;
    if (isEventStream(response.headers.get('content-type'))) return this.rewritten(response, id);
    return jsonResponse(response, await this.messagesOf(response, id));
  };

  private follow(sending: Promise<unknown>): void {
    this.notifying.add(sending);
    const done = (): boolean => this.notifying.delete(sending);
    sending.then(done, done);
  }

  /** The answer to a GET: a stream of events, or a status for a server without one. */
  private async stream(response: Response, hadSession: boolean): Promise<Response> {
    if (response.ok && isEventStream(response.headers.get('content-type'))) {
      this.hasStream = true;
      return this.rewritten(response);
    }
    const refusal = response.ok
      ? unreadable(await excerptOf(response))
      : await refusalOf(response, hadSession);
    if (!this.hasStream) this.refusal ??= refusal;
    // The SDK would read any page as a stream, and ask for it again and again.
    return new Response(null, { status: response.ok ? 405 : response.status });
  }

  /** The messages in a response that is no stream. */
  private async messagesOf(response: Response, id: RequestId): Promise<JSONRPCMessage[]> {
    let text: string;
    try {
      text = await textOf(response);
    } catch (error) {
      throw error instanceof OutboundRefused ? new McpFailure('unreadable', error.message) : CUT;
    }
    const messages = this.answers.read(parsed(text), id);
    return this.answers.isPending(id) ? [...messages, this.answers.fail(id, unreadable(text))] : messages;
  }

  private rewritten({ body, status, headers }: Response, id?: RequestId): Response {
    const events = body ? ReadableStream.from(this.events(body, id)) : undefined;
    const written = events?.pipeThrough(new TextEncoderStream()) ?? null;
    return new Response(written, { status, headers: typed(headers, 'text/event-stream') });
  }

  /** The events of a stream, with rewritten messages. The last one ends the request, if none before did. */
  private async *events(body: ReadableStream<Uint8Array>, about?: RequestId): AsyncGenerator<string> {
    const read: string[] = [];
    const seen: { isResumable: boolean; odd?: string } = { isResumable: false };
    const parser = createParser({
      onRetry: (ms) => void read.push(`retry: ${ms}\n\n`),
      onEvent: ({ id, event = 'message', data }) => {
        seen.isResumable ||= id !== undefined;
        const head = `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\n`;
        if (event !== 'message') return void read.push(`${head}${dataLines(data)}\n`);
        const messages = this.answers.read(parsed(data), about).map((message) => JSON.stringify(message));
        if (messages.length === 0 && data !== '') seen.odd ??= data;
        // A message that is not for the SDK still moves the point from which the stream can be resumed.
        for (const message of messages.length > 0 ? messages : ['']) read.push(`${head}data: ${message}\n\n`);
      },
    });
    const decoder = new TextDecoder();
    let failure = BROKEN;
    try {
      for await (const chunk of body) {
        parser.feed(decoder.decode(chunk, { stream: true }));
        yield* read.splice(0);
      }
    } catch (error) {
      const isRefused = error instanceof OutboundRefused;
      if (seen.isResumable && !isRefused) throw error;
      if (isRefused) failure = new McpFailure('unreadable', error.message);
    }
    // An event that is not complete: the server had begun to answer.
    parser.feed('\n\n');
    yield* read.splice(0);
    if (about === undefined || !this.answers.isPending(about)) return;
    if (seen.odd !== undefined) failure = unreadable(seen.odd);
    if (failure === BROKEN && seen.isResumable) return;
    yield `data: ${JSON.stringify(this.answers.fail(about, failure))}\n\n`;
  }
}

interface SentMessage {
  params?: { _meta?: Record<string, unknown> };
}

function sentMessage(body: unknown): SentMessage | undefined {
  // oxlint-disable-next-line no-restricted-properties -- the SDK in this process wrote it
  return typeof body === 'string' ? (JSON.parse(body) as SentMessage) : undefined;
}

/** The effect key of a call also as a header, for gateways in front of the server. A header of the settings wins. */
function withIdempotencyKey(init: RequestInit | undefined, message: SentMessage | undefined) {
  const key = message?.params?._meta?.[EFFECT_KEY];
  const headers = new Headers(init?.headers);
  if (typeof key !== 'string' || headers.has('idempotency-key')) return init;
  headers.set('idempotency-key', key);
  return { ...init, headers };
}

const dataLines = (data: string): string => data.replace(/^/gm, 'data: ') + '\n';

const textOf = async (response: Response): Promise<string> =>
  decodeText(new Uint8Array(await response.arrayBuffer()), response.headers.get('content-type'));

async function refusalOf(response: Response, hadSession: boolean): Promise<McpFailure> {
  const text = await excerptOf(response);
  const json = parsed(text) ?? parsed(/^data:(.*)$/m.exec(text)?.[1] ?? '');
  const details = errorInBody(json) ?? { serverText: textOfPage(text) };
  return httpRefusal(response.status, { ...details, hadSession });
}

const excerptOf = async (response: Response): Promise<string> => {
  const beginning = await beginningOf(response, MAX_SAID);
  return decodeText(beginning, response.headers.get('content-type'));
};

/** The JSON value of a text; undefined if the text is not JSON. */
function parsed(text: string): unknown {
  return jsonExcess(text) ? undefined : parseBoundedJson(text);
}

function jsonResponse({ status, headers }: Response, messages: JSONRPCMessage[]): Response {
  return new Response(JSON.stringify(messages), { status, headers: typed(headers, 'application/json') });
}

/** The headers of the rewritten UTF-8 body, without those of the original body. */
function typed(headers: Headers, type: string): Headers {
  const copy = new Headers(headers);
  for (const name of ['content-length', 'content-encoding']) copy.delete(name);
  copy.set('content-type', type);
  return copy;
}

/** A JSON-RPC error in the body of an HTTP error: its code and message. */
function errorInBody(body: unknown): Pick<McpFailureDetails, 'serverText' | 'rpc'> | undefined {
  const { error } = (typeof body === 'object' && body !== null ? body : {}) as JsonObject;
  const { code, message, data } = (typeof error === 'object' && error !== null ? error : {}) as JsonObject;
  if (typeof message !== 'string' || typeof code !== 'number') return undefined;
  return { serverText: `${code} ${message}`, rpc: { code, ...(data !== undefined && { data }) } };
}
