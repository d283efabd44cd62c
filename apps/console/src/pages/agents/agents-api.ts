import type { Schema } from '@cfworker/json-schema';
import { queryOptions } from '@tanstack/react-query';
import { stringify } from 'yaml';
import { ApiError } from '../../api/api-error';
import { answerOf, api } from '../../api/client';
import type { TenantSchemas } from '@baton/contract';
import { BASE } from '../../base';

export type Agent = TenantSchemas['Agent'];
export type AgentWrite = TenantSchemas['AgentWrite'];

/** The largest page that the API allows. */
const PAGE = 100;

/** An agent and its ETag. A write sends the ETag, so that it changes this version only. */
export const agentQuery = (name: string) =>
  queryOptions({
    queryKey: ['agents', name],
    queryFn: async () => {
      const { data, response } = await api.GET('/v1/agents/{agent}', { params: { path: { agent: name } } });
      return { agent: data as Agent, etag: response.headers.get('etag') ?? undefined };
    },
  });

/** The versions of an agent, the newest first. */
export const versionsQuery = (name: string) =>
  queryOptions({
    queryKey: ['agents', name, 'versions'],
    queryFn: () =>
      answerOf(
        api.GET('/v1/agents/{agent}/versions', { params: { path: { agent: name }, query: { limit: PAGE } } }),
      ),
  });

/** The open tasks of an agent by the version with which they have begun. */
export const openVersionsQuery = (name: string) =>
  queryOptions({
    queryKey: ['agents', name, 'versions', 'open'],
    queryFn: () =>
      answerOf(api.GET('/v1/agents/{agent}/open-versions', { params: { path: { agent: name } } })),
  });

/** A version of an agent as the text of its file; undefined if it was erased. */
export const versionTextQuery = (name: string, version: number) =>
  queryOptions({
    queryKey: ['agents', name, 'versions', version],
    queryFn: async () => {
      const path = { agent: name, version: String(version) };
      const { definition, enabled } = await answerOf(
        api.GET('/v1/agents/{agent}/versions/{version}', { params: { path } }),
      );
      return definition === null ? null : textOf({ ...(!enabled && { enabled }), ...definition });
    },
    // A version never changes; erasing one is rare, and the page is read again after it.
    staleTime: Infinity,
  });

/** The JSON Schema of agents in a catalog. */
export const schemaQuery = queryOptions({
  queryKey: ['agent-schema'],
  queryFn: async (): Promise<Schema> => {
    const response = await fetch(`${BASE}/v1/agent.schema.json`);
    const { properties = {}, ...schema } = (await response.json()) as Schema;
    const { tenants: _, ...own } = properties as Record<string, Schema>;
    return { ...schema, properties: own };
  },
  staleTime: Infinity,
});

/** An agent as its file would have it. */
export const documentText = ({ slug, enabled, definition }: Agent): string =>
  textOf({ slug, ...(!enabled && { enabled }), ...definition });

const textOf = (document: Record<string, unknown>): string => stringify(document, { lineWidth: 0 });

/** The header that lets a write change this version only (RFC 9110 §13.1.1). Unset: any version. */
const ifMatch = (etag: string | undefined): { 'if-match'?: string } =>
  etag === undefined ? {} : { 'if-match': etag };

/** Whether a write is only tried, whether MCP servers are asked for their tools then, and which version it changes. */
interface WriteOptions {
  dryRun?: boolean;
  checkTools?: boolean;
  etag?: string | undefined;
}

/** Creates or replaces an agent. @param name unset = the slug of the document, or one made from its name */
export async function writeAgent(
  name: string | undefined,
  document: unknown,
  { dryRun = false, checkTools = false, etag }: WriteOptions,
): Promise<AgentWrite> {
  const body = document as Record<string, unknown>;
  const yes = 'true' as never;
  const query = { ...(dryRun && { dryRun: yes }), ...(checkTools && { checkTools: yes }) };
  const headers = ifMatch(etag);
  return answerOf(
    name === undefined
      ? api.POST('/v1/agents', { params: { query }, headers, body: body as never })
      : api.PUT('/v1/agents/{agent}', {
          params: { path: { agent: name }, query },
          headers,
          body: body as never,
        }),
  );
}

/**
 * Gives a new version the label `next`, without a share of new tasks. The server refuses it while another version has a share.
 * @returns its number
 */
export async function tryVersion(name: string, document: unknown): Promise<number> {
  const body = { share: 0, agent: document as Record<string, unknown> };
  const agent = await answerOf(
    api.PUT('/v1/agents/{agent}/next', { params: { path: { agent: name } }, body: body as never }),
  );
  if (!agent.next) throw new Error('The server does not say which version is tried.');
  return agent.next.version;
}

export const setEnabled = (name: string, enabled: boolean, etag: string | undefined): Promise<unknown> =>
  answerOf(
    api.PATCH('/v1/agents/{agent}', {
      params: { path: { agent: name } },
      headers: ifMatch(etag),
      body: { enabled } as never,
    }),
  );

export const deleteAgent = (name: string, etag: string | undefined): Promise<unknown> =>
  api.DELETE('/v1/agents/{agent}', {
    params: { path: { agent: name } },
    headers: ifMatch(etag),
  });

export const restoreVersion = (name: string, version: number, etag: string | undefined): Promise<unknown> =>
  answerOf(
    api.POST('/v1/agents/{agent}/versions/{version}/restore', {
      params: { path: { agent: name, version: String(version) } },
      headers: ifMatch(etag),
    }),
  );

/** Makes the version with the label `next` the stable one. */
export const promoteNext = (name: string) =>
  answerOf(api.POST('/v1/agents/{agent}/next/promote', { params: { path: { agent: name } } }));

/**
 * Takes the label `next` from a version, or the mark that it was lost. Rejects with the status 409 if the version does not have it.
 * @param share only if it has this share
 */
export const withdrawNext = (name: string, version: number, share?: number) =>
  answerOf(
    api.DELETE('/v1/agents/{agent}/next', {
      params: { path: { agent: name }, query: { version, ...(share !== undefined && { share }) } },
    }),
  );

/** Takes the label `next` from a version without a share. Does nothing if the version has lost the label, or got a share meanwhile. */
export async function endTry(name: string, version: number): Promise<void> {
  try {
    await withdrawNext(name, version, 0);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
}

/** The names of the secrets that an agent uses: `{secret: crm}` anywhere, and the `key` of its model. */
export function secretNames({ config }: Record<string, unknown>): string[] {
  const names = new Set<string>();
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { secret } = value as { secret?: unknown };
    if (typeof secret === 'string') names.add(secret);
    for (const member of Object.values(value)) walk(member);
  };
  walk(config);
  const { key } = (config ?? {}) as { key?: unknown };
  if (typeof key === 'string') names.add(key);
  return [...names].sort();
}
