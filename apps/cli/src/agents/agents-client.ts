import type { TenantPaths, TenantSchemas } from '@baton/contract';
import { answerOf, listAll, type TenantApi } from '../api.js';
import { RefusedError } from '../refused-error.js';
import type { LoadFailure } from './load-failure.js';

export type ShownAgent = TenantSchemas['Agent'];
export type Written = TenantSchemas['AgentWrite'];
type OpenVersions =
  TenantPaths['/v1/agents/{agent}/open-versions']['get']['responses']['200']['content']['application/json'];
type AgentDocument = TenantSchemas['AgentDocument'];

/** How a write is meant. */
export interface PutOptions {
  dryRun?: boolean;
  /** With `dryRun`: ask the MCP servers for their tools. */
  checkTools?: boolean;
  /** The expected version; null = the agent must not exist, undefined = any. */
  etag?: string | null;
}

/** The agents of a server, as a tenant has them with its token. Every error is an OperatorError. */
export class AgentsClient {
  constructor(private readonly api: TenantApi) {}

  /** Undefined: the tenant has no such agent. */
  async find(agent: string): Promise<{ agent: ShownAgent; etag: string | null } | undefined> {
    try {
      const { data, response } = await this.api.GET('/v1/agents/{agent}', { params: { path: { agent } } });
      return data && { agent: data, etag: response.headers.get('etag') };
    } catch (error) {
      if (error instanceof RefusedError && error.status === 404) return undefined;
      throw error;
    }
  }

  list(): Promise<TenantSchemas['AgentSummary'][]> {
    return listAll(
      (query) => this.api.GET('/v1/agents', { params: { query } }),
      ({ agents }) => agents,
    );
  }

  /** Empty for a token without `agents:write`. */
  async loadFailures(): Promise<LoadFailure[]> {
    const page = await answerOf(this.api.GET('/v1/agents', { params: { query: { limit: 1 } } }));
    return page.load_failures ?? [];
  }

  versions(agent: string): Promise<TenantSchemas['AgentVersionSummary'][]> {
    return listAll(
      (query) => this.api.GET('/v1/agents/{agent}/versions', { params: { path: { agent }, query } }),
      ({ versions }) => versions,
    );
  }

  /** Its open tasks by the version with which they have begun. */
  openVersions(agent: string): Promise<OpenVersions> {
    return answerOf(this.api.GET('/v1/agents/{agent}/open-versions', { params: { path: { agent } } }));
  }

  /** Creates or changes the agent to match the document. The server's error names what is wrong with it. */
  put(agent: string, document: unknown, { dryRun, checkTools, etag }: PutOptions = {}): Promise<Written> {
    const query = { ...(dryRun && { dryRun }), ...(dryRun && checkTools && { checkTools }) };
    const header = etag === null ? { 'If-None-Match': '*' } : { 'If-Match': etag };
    // A file may hold nothing.
    const body = (document ?? null) as AgentDocument;
    return answerOf(this.api.PUT('/v1/agents/{agent}', { params: { path: { agent }, query, header }, body }));
  }

  setEnabled(agent: string, enabled: boolean): Promise<Written> {
    return answerOf(this.api.PATCH('/v1/agents/{agent}', { params: { path: { agent } }, body: { enabled } }));
  }

  restore(agent: string, version: string): Promise<Written> {
    const params = { path: { agent, version } };
    return answerOf(this.api.POST('/v1/agents/{agent}/versions/{version}/restore', { params }));
  }

  /** Give a version the label `next`. */
  setNext(agent: string, body: TenantSchemas['NextVersionWrite']): Promise<ShownAgent> {
    return answerOf(this.api.PUT('/v1/agents/{agent}/next', { params: { path: { agent } }, body }));
  }

  promoteNext(agent: string): Promise<ShownAgent> {
    return answerOf(this.api.POST('/v1/agents/{agent}/next/promote', { params: { path: { agent } } }));
  }

  /** @param version of the label `next`: refused if another version has the label. Unset: the version that has it */
  async withdrawNext(agent: string, version?: number): Promise<void> {
    const query = version === undefined ? {} : { version };
    await answerOf(this.api.DELETE('/v1/agents/{agent}/next', { params: { path: { agent }, query } }));
  }

  async eraseVersion(agent: string, version: string): Promise<void> {
    const params = { path: { agent, version } };
    await answerOf(this.api.DELETE('/v1/agents/{agent}/versions/{version}', { params }));
  }

  async remove(agent: string): Promise<void> {
    await answerOf(this.api.DELETE('/v1/agents/{agent}', { params: { path: { agent } } }));
  }
}
