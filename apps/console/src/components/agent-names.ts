import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { answerOf, api } from '../api/client';
import { useCaller } from '../session/caller';

/** Slugs of agents by their ids, if the caller may read them. */
export function useAgentNames(): ReadonlyMap<string, string> {
  const { can } = useCaller();
  const { data } = useQuery({
    queryKey: ['agent-names'],
    queryFn: () => answerOf(api.GET('/v1/agents', { params: { query: { limit: 100 } } })),
    enabled: can('agents:read', 'agents:write'),
    staleTime: 60_000,
  });
  return useMemo(
    () => new Map((data?.agents ?? []).flatMap(({ id, slug }) => (id === undefined ? [] : [[id, slug]]))),
    [data],
  );
}
