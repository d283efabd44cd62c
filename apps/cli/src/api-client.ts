import { createFetch } from './a2a/fetch.js';
import { findTarget, type Target } from './a2a/target.js';
import type { Cli } from './cli.js';

/** What every command has that calls a server with a tenant's token. */
export interface TargetOptions {
  url?: string;
  token?: string;
}

export const URL_OPTION = ['--url <url>', 'the server (default: the one that npm start runs here)'] as const;
export const TOKEN_OPTION = [
  '--token <token>',
  "the tenant's token (default: that of the demo tenant)",
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
    const { url } = this.target;
    const response = await this.fetch(new URL(`v1/${path}`, url.endsWith('/') ? url : `${url}/`), {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
}
