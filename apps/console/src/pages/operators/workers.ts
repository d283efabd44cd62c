import { queryOptions } from '@tanstack/react-query';
import { answerOf, operatorApi } from '../../api/client';

/** Often enough to watch a deployment. */
const EVERY_MS = 5_000;

/** The workers of the last hour, read again while a page shows them. */
export const workersQuery = queryOptions({
  queryKey: ['operators', 'workers'],
  queryFn: () => answerOf(operatorApi.GET('/v1/admin/workers')),
  refetchInterval: EVERY_MS,
});

/** How much work there is, read again while a page shows it. */
export const queueQuery = queryOptions({
  queryKey: ['operators', 'queue'],
  queryFn: () => answerOf(operatorApi.GET('/v1/admin/queue')),
  refetchInterval: EVERY_MS,
});
