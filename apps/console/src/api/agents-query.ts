import { queryOptions } from '@tanstack/react-query';
import type { TenantSchemas } from '@baton/contract';
import { answerOf, api } from './client';

export type AgentSummary = TenantSchemas['AgentSummary'];
export type LoadFailure = TenantSchemas['LoadFailure'];

/** A page of the list. */
interface AgentPage {
  agents: AgentSummary[];
  load_failures?: LoadFailure[];
  next_cursor: string | null;
}

/** The largest page that the API allows. */
const PAGE = 100;

/** All agents of the caller, and the load errors of others. */
export const agentsQuery = queryOptions({
  queryKey: ['agents'],
  queryFn: async () => {
    const agents: AgentSummary[] = [];
    const failures: LoadFailure[] = [];
    for (let cursor: string | null | undefined = undefined; cursor !== null;) {
      const query: { limit: number; cursor?: string } = {
        limit: PAGE,
        ...(cursor !== undefined && { cursor }),
      };
      const page: AgentPage = await answerOf(api.GET('/v1/agents', { params: { query } }));
      agents.push(...page.agents);
      failures.push(...(page.load_failures ?? []));
      cursor = page.next_cursor;
    }
    return { agents, failures };
  },
});
