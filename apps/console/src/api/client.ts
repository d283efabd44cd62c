import type {} from '../first-reads';
import type { OperatorPaths, TenantPaths } from '@baton/contract';
import createClient, { type Middleware } from 'openapi-fetch';
import { ApiError, errorOf } from './api-error';
import { BASE, SERVER_URL } from '../base';

let tokenSource: () => Promise<string | undefined> = async () => undefined;

/** Signs every call from now on with the token of this source. Undefined: the user is signed out. */
export function signWith(source: () => Promise<string | undefined>): void {
  tokenSource = source;
}

/** Throws if the user is signed out: no request is sent then. */
async function authorization(): Promise<string> {
  const token = await tokenSource();
  if (token === undefined) throw new ApiError('Sign in to continue.', 401, 'UNAUTHENTICATED');
  return `Bearer ${token}`;
}

/** Takes the answer that `first-reads.ts` has asked for, if this is the same call. A later one asks again. */
function send(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const key = `${request.headers.get('authorization') ?? ''} ${pathname}${search}`;
  const read = request.method === 'GET' ? window.batonFirstReads?.get(key) : undefined;
  window.batonFirstReads?.delete(key);
  return read ?? fetch(request);
}

const authorize: Middleware = {
  async onRequest({ request }) {
    request.headers.set('authorization', await authorization());
    return request;
  },
  async onResponse({ response }) {
    if (!response.ok) throw await errorOf(response);
  },
  onError({ error }) {
    return error instanceof ApiError ? error : ApiError.unreachable();
  },
};

/**
 * The REST API with the token of the user. Paths, parameters, bodies and answers have the types of its OpenAPI
 * document. Every call rejects with an `ApiError` if it is not a success: `const list = await answerOf(api.GET('/v1/agents'))`.
 */
export const api = createClient<TenantPaths>({ baseUrl: SERVER_URL, fetch: send });
api.use(authorize);

/** The API of operators in the same way. It is at the management port alone. */
export const operatorApi = createClient<OperatorPaths>({ baseUrl: SERVER_URL, fetch: send });
operatorApi.use(authorize);

/** The body of a successful answer. Rejects with an `ApiError`. */
export async function answerOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  // The middleware has thrown for everything else.
  return (await call).data as T;
}

/**
 * A call that is not in the OpenAPI document: A2A, or a stream. @param path below the URL of the server, such as `/agents/echo`
 * @throws ApiError
 */
export async function fetchApi(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('authorization', await authorization());
  const response = await fetch(BASE + path, { ...init, headers }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw ApiError.unreachable();
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}
