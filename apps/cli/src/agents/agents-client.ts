import { stringify } from 'yaml';
import { oneLine } from '../output.js';
import { type ApiClient } from '../api-client.js';
import { RefusedError } from '../refused-error.js';

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

/** An agent in code that workers could not load. */
export interface LoadFailure {
  /** Null: the folder of agents can not be read. */
  agent: string | null;
  file: string;
  line: number | null;
  reason: string;
}

export interface ShownVersion {
  version: number;
  enabled: boolean;
  created_at: string;
  created_by: string;
  /** When its contents were erased. */
  erased_at: string | null;
}

/** What a write did, or would do. */
export interface Written {
  outcome: 'created' | 'updated' | 'unchanged';
  agent: ShownAgent;
  /** Settings that are accepted but fail when the agent runs. */
  warnings?: { field: string; description: string; agent?: string }[];
  /** What the card should have and the definition leaves out. */
  hints?: { field: string; description: string }[];
  /** MCP servers that were not asked for their tools. */
  unchecked_tools?: { field: string; description: string }[];
}

/** How a write is meant. */
export interface Write {
  dryRun?: boolean;
  /** With `dryRun`: ask the MCP servers for their tools. */
  checkTools?: boolean;
  /** The expected version; null = the agent must not exist, undefined = any. */
  etag?: string | null;
}

/** The agents of a server, as a tenant has them with its token. Every error is an OperatorError. */
export class AgentsClient {
  constructor(private readonly api: ApiClient) {}

  /** Undefined: the tenant sees no such agent. */
  async find(name: string): Promise<{ agent: ShownAgent; etag: string | null } | undefined> {
    try {
      const response = await this.api.open('GET', pathOf(name));
      return { agent: (await response.json()) as ShownAgent, etag: response.headers.get('etag') };
    } catch (error) {
      if (error instanceof RefusedError && error.status === 404) return undefined;
      throw error;
    }
  }

  list(): Promise<ListedAgent[]> {
    return this.api.list<ListedAgent>('agents', 'agents');
  }

  /** Empty for a token without `agents:write`. */
  loadFailures(): Promise<LoadFailure[]> {
    return readLoadFailures(this.api, 'agents');
  }

  versions(name: string): Promise<ShownVersion[]> {
    return this.api.list<ShownVersion>(`${pathOf(name)}/versions`, 'versions');
  }

  /** Make the agent what the document says. */
  async put(name: string, document: unknown, { dryRun, checkTools, etag }: Write = {}): Promise<Written> {
    const query = dryRun ? `?dryRun=true${checkTools ? '&checkTools=true' : ''}` : '';
    const path = `${pathOf(name)}${query}`;
    const headers = { ...(etag === null ? { 'if-none-match': '*' } : etag && { 'if-match': etag }) };
    // A file may hold nothing, and the server says what is missing.
    const response = await this.api.open('PUT', path, { body: document ?? null, headers });
    return (await response.json()) as Written;
  }

  patch(name: string, patch: object): Promise<Written> {
    return this.api.call('PATCH', pathOf(name), patch);
  }

  restore(name: string, version: string): Promise<Written> {
    return this.api.call('POST', `${pathOf(name)}/versions/${encodeURIComponent(version)}/restore`);
  }

  async eraseVersion(name: string, version: string): Promise<void> {
    await this.api.call('DELETE', `${pathOf(name)}/versions/${encodeURIComponent(version)}`);
  }

  async remove(name: string): Promise<void> {
    await this.api.call('DELETE', pathOf(name));
  }
}

/** @param path of a list of agents */
export async function readLoadFailures(api: ApiClient, path: string): Promise<LoadFailure[]> {
  const page = await api.call<{ load_failures?: LoadFailure[] }>('GET', `${path}?limit=1`);
  return page.load_failures ?? [];
}

/** A line for people: what, where and why. */
export const failureText = ({ agent, file, line, reason }: LoadFailure): string =>
  `Agent ${agent ?? '-'} could not be loaded: ${placeAndReason({ file, line, reason })}`;

/** The place of a fault and its reason: `index.mjs:3: Unexpected end of input`. */
export const placeAndReason = ({ file, line, reason }: Omit<LoadFailure, 'agent'>): string =>
  `${file}${line === null ? '' : `:${line}`}: ${oneLine(reason.replace(/^could not be loaded: /, ''), 300)}`;

const pathOf = (name: string): string => `agents/${encodeURIComponent(name)}`;

/** An agent as its file would have it. */
export function documentOf({ slug, enabled, definition }: ShownAgent): Record<string, unknown> {
  return { slug, ...(!enabled && { enabled }), ...definition };
}

/** The same as YAML. */
export const agentText = (agent: ShownAgent): string => stringify(documentOf(agent), { lineWidth: 0 });
