import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
import { answerOf, operatorApi } from '../api/client';
import type { OperatorSchemas } from '@baton/contract';

/** Whether this page is the console of operators: the server writes it into the page, at the management port alone. */
export const isForOperators =
  document.querySelector<HTMLMetaElement>('meta[name="baton-audience"]')?.content === 'operators';

/** The operator who has signed in. */
export const operatorQuery = queryOptions({
  queryKey: ['operator'],
  queryFn: () => answerOf(operatorApi.GET('/v1/admin/whoami')),
  staleTime: 60_000,
});

/** The operator, on pages of operators. */
export const useOperator = (): OperatorSchemas['Operator'] => useSuspenseQuery(operatorQuery).data;
