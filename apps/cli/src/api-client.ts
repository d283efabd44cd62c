import { createFetch } from './a2a/fetch.js';
import { findTarget, type Target } from './a2a/target.js';
import type { Cli } from './cli.js';

/** What every command has that calls a server with a tenant's token. */
export interface TargetOptions {
  url?: string;
  token?: string;
}

export const URL_OPTION = [
  '--url <url>',
  'the server (default: BATON_URL, or the one that npm start runs here)',
] as const;
export const TOKEN_OPTION = [
  '--token <token>',
  "the tenant's token (default: BATON_TOKEN, or that of the demo tenant)",
] as const;

/** Baton's own endpoints of a server (`/v1/…`), called by a tenant. Every error is an OperatorError. */
export class ApiClient {
  private readonly fetch: typeof fetch;

  private constructor(private readonly target: Target) {
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

  /** Like `call`, for whoever needs the headers of the answer. */
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

  /** Every entry of a list, page by page. @param key where the entries stand in a page */
  async list<T>(path: string, key: string): Promise<T[]> {
    const all: T[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query = new URLSearchParams({ limit: '100', ...(cursor && { cursor }) });
      const page = await this.call<Record<string, unknown>>('GET', `${path}?${query.toString()}`);
      all.push(...(page[key] as T[]));
      cursor = page.next_cursor as string | null;
    }
    return all;
  }
}
