import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import { queryOf, type TaskFilters } from './filters';
import type { Task } from './task-words';

/** How long a list is kept that no page shows, in ms: the user may go back to it. */
const KEPT_MS = 10 * 60_000;

/** One page of the list. @param cursor empty: the first */
export const readTasks = (filters: TaskFilters, cursor: string, signal: AbortSignal) =>
  answerOf(
    api.GET('/v1/tasks', {
      params: { query: { ...queryOf(filters, Date.now()), ...(cursor !== '' && { cursor }) } },
      signal,
    }),
  );

/** The pages of the list as far as they are read. @param entry the entry of the browser's history: another visit reads a new list */
export const tasksQuery = (filters: TaskFilters, entry: string) =>
  infiniteQueryOptions({
    queryKey: ['tasks', JSON.stringify(filters), entry],
    queryFn: ({ pageParam, signal }) => readTasks(filters, pageParam, signal),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: next }) => next ?? undefined,
    staleTime: Infinity,
    gcTime: KEPT_MS,
  });

/** What a task has done outside of Baton. */
export const effectsQuery = ({ task_id: task, state, updated_at: at }: Task) =>
  queryOptions({
    // The journal grows with the task: it is read again with each state.
    queryKey: ['effects', task, state, at],
    queryFn: ({ signal }) => answerOf(api.GET('/v1/effects', { params: { query: { task } }, signal })),
  });

/** How often the tasks of each state are counted, in ms. */
const COUNT_MS = 15_000;

/** How many tasks of a list are in each state, up to 1,000. A search counts none. */
export const countsQuery = ({ state: _, ...filters }: TaskFilters) =>
  queryOptions({
    queryKey: ['task-counts', JSON.stringify(filters)],
    queryFn: async ({ signal }) => {
      const query = { ...queryOf(filters, Date.now()), limit: 1, counts: true };
      const { counts = [] } = await answerOf(api.GET('/v1/tasks', { params: { query }, signal }));
      return new Map(counts.map(({ state, tasks }) => [state, tasks]));
    },
    enabled: filters.text === undefined,
    refetchInterval: COUNT_MS,
  });
