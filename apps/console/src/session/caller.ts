import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
import { answerOf, api } from '../api/client';
import type { TenantSchemas } from '@baton/contract';

export type Caller = TenantSchemas['Caller'];
export type CallerScope = Caller['scopes'][number];

/** Who has signed in. */
export const callerQuery = queryOptions({
  queryKey: ['whoami'],
  queryFn: () => answerOf(api.GET('/v1/whoami')),
  staleTime: 60_000,
});

/** Whether a caller has one of these scopes. `admin` includes all. No scopes: all callers have them. */
export const hasScope = ({ scopes }: Pick<Caller, 'scopes'>, wanted: readonly CallerScope[]): boolean =>
  wanted.length === 0 || scopes.includes('admin') || wanted.some((scope) => scopes.includes(scope));

/** The caller, on pages that are shown after sign-in, and what it may do: `can('agents:write')`. */
export function useCaller(): Caller & { can: (...scopes: CallerScope[]) => boolean } {
  const { data: caller } = useSuspenseQuery(callerQuery);
  return { ...caller, can: (...scopes) => hasScope(caller, scopes) };
}
