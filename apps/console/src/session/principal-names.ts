import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { answerOf, api } from '../api/client';
import { useCaller } from './caller';

/** Tokens whose names are known: the newest. */
const MAX_TOKENS = 1_000;

/** Names of tokens by the key of their principal, such as `token:<id>`. */
async function readTokenNames(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  let cursor: string | undefined;
  do {
    const query = { limit: 100, ...(cursor !== undefined && { cursor }) };
    const page = await answerOf(api.GET('/v1/tokens', { params: { query }, signal }));
    for (const { id, name } of page.tokens) names.set(`token:${id}`, name);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && names.size < MAX_TOKENS);
  return names;
}

/** The principals whose names the caller may read, by key and name. */
export function usePrincipalNames(): ReadonlyMap<string, string> {
  const { can, principal, token } = useCaller();
  const { data } = useQuery({
    queryKey: ['token-names'],
    queryFn: ({ signal }) => readTokenNames(signal),
    enabled: can('admin'),
    staleTime: 60_000,
  });
  return useMemo(
    () => new Map([...(data ?? []), ...(token ? [[principal.key, token.name] as const] : [])]),
    [data, principal.key, token],
  );
}

/**
 * The name of a principal by its key: for a token its name, if the caller may read it. Administrators may read all, others that of
 * their own. For all other principals it is the key itself.
 */
export function usePrincipalName(): (key: string) => string {
  const names = usePrincipalNames();
  return useCallback((key) => names.get(key) ?? key, [names]);
}
