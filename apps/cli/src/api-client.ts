import { isEventStream } from '@baton/a2a';
import { type EnvironmentSource, loadLocalEnvironment } from '@baton/config';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type Cli, readStateFile } from './cli.js';
import { EXIT } from './exit.js';
import { UsageError } from './usage-error.js';
import { OperatorError } from './operator-error.js';
import { UnreachableError } from './unreachable-error.js';
import { RefusedError, type WrongField } from './refused-error.js';
import { SequenceTap } from './server.js';

/** Options of every command that calls a server with a tenant's token. */
export interface TargetOptions {
  url?: string;
  token?: string;
}

/** Most entries of a page. */
const MAX_PAGE = 100;

/** Baton's own endpoints of a server (`/v1/…`), called by a tenant. Every error is an OperatorError. */
export class ApiClient {
  private readonly fetch: typeof fetch;

  constructor(private readonly target: Target) {
    this.fetch = createFetch(target.token);
  }

  /** The client for the server that the options name, or for the demo that runs here. */
  static of({ source }: Cli, options: TargetOptions): ApiClient {
    return new ApiClient(findTarget(source, options));
  }

  /**
   * @param path below `/v1`, each segment escaped
   * @returns the JSON of the answer; undefined if it has no body
   */
  async call<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await this.open(method, path, { body });
    const text = await response.text();
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** Like `call`, for callers that need the headers of the answer. */
  open(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const { url } = this.target;
    return this.fetch(new URL(`v1/${path}`, url.endsWith('/') ? url : `${url}/`), {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  /** Sends a stream as the body. */
  send(method: string, path: string, body: Readable, contentType: string): Promise<Response> {
    const { url } = this.target;
    return this.fetch(new URL(`v1/${path}`, url.endsWith('/') ? url : `${url}/`), {
      method,
      headers: { 'content-type': contentType },
      body: Readable.toWeb(body) as ReadableStream,
      duplex: 'half',
    });
  }

  /**
   * The entries of a list, page by page.
   * @param key where the entries stand in a page
   * @param query what else the list is asked for
   * @param max how many are wanted
   */
  async list<T>(path: string, key: string, query: Record<string, string> = {}, max = Infinity): Promise<T[]> {
    const all: T[] = [];
    for (let cursor: string | null = ''; cursor !== null && all.length < max;) {
      const limit = String(Math.min(MAX_PAGE, max - all.length));
      const search = new URLSearchParams({ ...query, limit, ...(cursor && { cursor }) });
      const page = await this.call<Record<string, unknown>>('GET', `${path}?${search.toString()}`);
      all.push(...(page[key] as T[]));
      cursor = page.next_cursor as string | null;
    }
    return all;
  }
}

/** A server, and the token to call it with. */
export interface Target {
  url: string;
  token: string;
}

/**
 * The server to call: the options, else BATON_URL and BATON_TOKEN, else the demo of the `npm start` in this folder
 * (`<BATON_HOME>/demo.json`). The demo's token is never sent to another server. Throws OperatorError.
 */
export function findTarget(source: EnvironmentSource, options: { url?: string; token?: string }): Target {
  const path = join(loadLocalEnvironment(source).home, 'demo.json');
  const demo = readStateFile(path);
  const url = options.url ?? (source.BATON_URL?.trim() || demo?.url);
  if (typeof url !== 'string') {
    throw new UsageError(
      'No server is configured: give --url and --token, or start Baton with `npm start` here.',
    );
  }
  if (!isHttpUrl(url)) {
    throw new UsageError(`--url: "${url}" is not an http(s) URL: give one such as http://localhost:8080.`);
  }
  const ownToken = source.BATON_TOKEN?.trim();
  const token = options.token ?? (ownToken || (isSameServer(url, demo?.url) ? demo?.token : undefined));
  if (typeof token !== 'string') {
    throw new UsageError(`There is no token for ${url}: give --token, from npx baton tokens create.`);
  }
  return { url, token };
}

export const isHttpUrl = (url: string): boolean =>
  URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
const isSameServer = (url: string, demoUrl: unknown): boolean =>
  typeof demoUrl === 'string' && URL.canParse(demoUrl) && new URL(demoUrl).origin === new URL(url).origin;

/** Statuses of a proxy while the server restarts. */
const AWAY = new Set([502, 503, 504]);

/**
 * A `fetch` that sends the token and whose errors are sentences for the operator.
 * @param tap makes a tap for each event stream; unset where there are none
 */
export function createFetch(token: string, tap?: () => SequenceTap): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    const { origin } = new URL(input instanceof Request ? input.url : input);
    const response = await fetch(input, { ...init, headers }).catch((error: unknown) => {
      throw unreachable(origin, error);
    });
    if (!response.ok) throw await refusal(origin, response);
    return tap && isStream(response) ? tapped(response, tap()) : response;
  };
}

const isStream = ({ headers }: Response): boolean => isEventStream(headers.get('content-type'));

function tapped(response: Response, tap: SequenceTap): Response {
  const decoder = new TextDecoder();
  const body = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        tap.feed(decoder.decode(chunk, { stream: true }));
        controller.enqueue(chunk);
      },
    }),
  );
  return new Response(body, response);
}

function unreachable(origin: string, error: unknown): UnreachableError {
  // Node says only "fetch failed"; why it did is in the cause.
  const code = (error as { cause?: { code?: unknown } }).cause?.code;
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new UnreachableError(`${origin} did not answer in time: use --stream for long tasks.`);
  }
  const reason = typeof code === 'string' ? ` (${code})` : '';
  return new UnreachableError(
    `${origin} does not answer${reason}: check --url, or start Baton with \`npm start\`.`,
    { cause: error },
  );
}

async function refusal(origin: string, response: Response): Promise<OperatorError> {
  const { status } = response;
  if (AWAY.has(status))
    return new UnreachableError(`${origin} is not ready (${status}): try again in a moment.`);
  if (status === 401) {
    return new OperatorError(
      `${origin} refuses the token: give a valid one with --token, from npx baton tokens create.`,
      { exitCode: EXIT.notAllowed },
    );
  }
  const body = await response.text().catch(() => '');
  return new RefusedError(origin, status, messageOf(body) ?? 'no reason is given', fieldsOf(body));
}

/** Of an error of Baton's own endpoints. */
function fieldsOf(body: string): WrongField[] {
  try {
    const { error } = JSON.parse(body) as { error?: { fields?: unknown } };
    return Array.isArray(error?.fields) ? (error.fields as WrongField[]) : [];
  } catch {
    return [];
  }
}

/** Of a JSON-RPC error, or of any error that is an object with a message. */
function messageOf(body: string): string | undefined {
  try {
    // A cancel that is refused says only the reason.
    const {
      error,
      reason,
      message = error?.message ?? reason,
    } = JSON.parse(body) as {
      message?: unknown;
      reason?: unknown;
      error?: { message?: unknown };
    };
    return typeof message === 'string' ? message.replace(/\.$/, '') : undefined;
  } catch {
    return undefined;
  }
}
