import { createFetch, RefusedError } from '../a2a/fetch.js';
import { SequenceTap } from '../a2a/sequence-tap.js';
import type { Target } from '../a2a/target.js';

/** An agent as the server shows it. */
export interface ShownAgent {
  id?: string;
  slug: string;
  origin: 'catalog' | 'installed' | 'builtin';
  enabled: boolean;
  version: number | null;
  definition: Record<string, unknown>;
}

/** An agent in a list. */
export interface ListedAgent extends Omit<ShownAgent, 'definition'> {
  name: string;
  description: string;
  runtime: string;
}

export interface ShownVersion {
  version: number;
  enabled: boolean;
  created_at: string;
  created_by: string;
}

/** What a write did, or would do. */
export interface Written {
  outcome: 'created' | 'updated' | 'unchanged';
  agent: ShownAgent;
}

/** How a write is meant. */
export interface Write {
  dryRun?: boolean;
  /** The state that it goes on from; null = the agent must not exist, undefined = whatever it is. */
  etag?: string | null;
}

/** The agents of a server, as a tenant has them with its token. Every error is an OperatorError. */
export class AgentsClient {
  private readonly base: string;
  private readonly fetch: typeof fetch;

  constructor({ url, token }: Target) {
    this.base = new URL('v1/agents', url.endsWith('/') ? url : `${url}/`).href;
    this.fetch = createFetch(token, () => new SequenceTap());
  }

  /** Undefined: the tenant sees no such agent. */
  async find(name: string): Promise<{ agent: ShownAgent; etag: string | null } | undefined> {
    try {
      const response = await this.fetch(this.urlOf(name));
      return { agent: (await response.json()) as ShownAgent, etag: response.headers.get('etag') };
    } catch (error) {
      if (error instanceof RefusedError && error.status === 404) return undefined;
      throw error;
    }
  }

  list(): Promise<ListedAgent[]> {
    return this.pages<ListedAgent>(this.base, 'agents');
  }

  versions(name: string): Promise<ShownVersion[]> {
    return this.pages<ShownVersion>(`${this.urlOf(name)}/versions`, 'versions');
  }

  put(name: string, document: unknown, write: Write = {}): Promise<Written> {
    return this.write('PUT', this.urlOf(name), document, write);
  }

  patch(name: string, patch: unknown): Promise<Written> {
    return this.write('PATCH', this.urlOf(name), patch, {});
  }

  restore(name: string, version: string): Promise<Written> {
    const url = `${this.urlOf(name)}/versions/${encodeURIComponent(version)}/restore`;
    return this.write('POST', url, undefined, {});
  }

  async remove(name: string): Promise<void> {
    await this.fetch(this.urlOf(name), { method: 'DELETE' });
  }

  private async write(method: string, url: string, body: unknown, { dryRun, etag }: Write): Promise<Written> {
    const headers = new Headers({ 'content-type': 'application/json' });
    if (etag === null) headers.set('if-none-match', '*');
    else if (etag !== undefined) headers.set('if-match', etag);
    const response = await this.fetch(dryRun ? `${url}?dryRun=true` : url, {
      ...{ method, headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Written;
  }

  private async pages<T>(url: string, key: string): Promise<T[]> {
    const all: T[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query = new URLSearchParams({ limit: '100', ...(cursor && { cursor }) });
      const response = await this.fetch(`${url}?${query.toString()}`);
      const page = (await response.json()) as Record<string, unknown>;
      all.push(...(page[key] as T[]));
      cursor = page.next_cursor as string | null;
    }
    return all;
  }

  private readonly urlOf = (name: string): string => `${this.base}/${encodeURIComponent(name)}`;
}
