import { isEventStream } from '@baton/a2a';
import { type EnvironmentSource, loadLocalEnvironment } from '@baton/config';
import type { TenantPaths, WrongField } from '@baton/contract';
import { join } from 'node:path';
import createClient, { type Client } from 'openapi-fetch';
import type { Cli, JsonOption } from './cli.js';
import { readStateFile } from './state-file.js';
import { EXIT } from './exit.js';
import { UsageError } from './usage-error.js';
import { OperatorError } from './operator-error.js';
import { UnreachableError } from './unreachable-error.js';
import { RefusedError } from './refused-error.js';
import { SequenceTap } from './sequence-tap.js';

/** Options of every command that calls a server with a tenant's token. */
export interface TargetOptions {
  url?: string;
  token?: string;
}

/** Options of a command for a server that can print its result as JSON. */
export type ServerOptions = TargetOptions & JsonOption;

/** `/v1` with the token of a tenant. Every call rejects with an OperatorError unless it succeeds. */
export type TenantApi = Client<TenantPaths>;

/** The API of tenants at the server that the options name, or at the demo that runs here. */
export const tenantApi = ({ source }: Pick<Cli, 'source'>, options: TargetOptions): TenantApi =>
  createApi<TenantPaths>(findTarget(source, options));

/** A client whose paths, parameters, bodies and answers have the types of the OpenAPI document. */
export const createApi = <Paths extends object>({ url, token }: Target): Client<Paths> =>
  createClient<Paths>({ baseUrl: url, fetch: createFetch(token) });

/** The body of a successful answer. */
export async function answerOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  // `createFetch` has thrown for everything else.
  return (await call).data as T;
}

/** Maximum number of entries of a page: what the API allows. */
const MAX_PAGE = 100;

/** Maximum number of entries of a command's list, which is in memory as a whole. It takes a hundred calls of the API. */
export const MAX_LISTED = 100 * MAX_PAGE;

/**
 * The entries of a list, page by page: `listAll((query) => api.GET('/v1/agents', { params: { query } }), (page) => page.agents)`.
 * @param max how many are wanted
 */
export async function listAll<Page extends { next_cursor: string | null }, Entry>(
  readPage: (query: { limit: number; cursor?: string }) => Promise<{ data?: Page }>,
  entriesOf: (page: Page) => readonly Entry[],
  max = Infinity,
): Promise<Entry[]> {
  const all: Entry[] = [];
  for (let cursor: string | null = ''; cursor !== null && all.length < max;) {
    const limit = Math.min(MAX_PAGE, max - all.length);
    const page: Page = await answerOf(readPage({ limit, ...(cursor && { cursor }) }));
    all.push(...entriesOf(page));
    cursor = page.next_cursor;
  }
  return all;
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

export const isHttpUrl = (url: string): boolean => /^https?:$/.test(URL.parse(url)?.protocol ?? '');
const isSameServer = (url: string, demoUrl: unknown): boolean =>
  typeof demoUrl === 'string' && URL.parse(demoUrl)?.origin === new URL(url).origin;

/** Statuses of a proxy while the server restarts. */
const AWAY = new Set([502, 503, 504]);

/**
 * A `fetch` that sends the token and whose errors are sentences for the operator.
 * @param tap makes a tap for each event stream; unset where there are none
 */
export function createFetch(token: string, tap?: () => SequenceTap): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
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
  // Node's error is only "fetch failed"; its cause has the reason.
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

/** The wrong fields in an error of Baton's own endpoints. */
function fieldsOf(body: string): WrongField[] {
  try {
    const { error } = JSON.parse(body) as { error?: { fields?: unknown } };
    return Array.isArray(error?.fields) ? (error.fields as WrongField[]) : [];
  } catch {
    return [];
  }
}

/** The message of a JSON-RPC error, or of another error that is an object with a message. */
function messageOf(body: string): string | undefined {
  try {
    // The error of a refused cancel has only the reason.
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
