import { infiniteQueryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import { queryOf, type TaskFilters } from './filters';

/** How long a list is kept that no page shows: the list is asked for before the page is drawn. */
const KEPT_MS = 5_000;

/** One page of the list. @param cursor empty: the first */
export const readTasks = (filters: TaskFilters, cursor: string, signal: AbortSignal) =>
  answerOf(
    api.GET('/v1/tasks', {
      params: { query: { ...queryOf(filters, Date.now()), ...(cursor !== '' && { cursor }) } },
      signal,
    }),
  );

/** The pages of the list as far as they are read. */
export const tasksQuery = (filters: TaskFilters) =>
  infiniteQueryOptions({
    queryKey: ['tasks', JSON.stringify(filters)],
    queryFn: ({ pageParam, signal }) => readTasks(filters, pageParam, signal),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: next }) => next ?? undefined,
    staleTime: Infinity,
    gcTime: KEPT_MS,
  });
