import type { TenantSchemas } from '@baton/contract';
import {
  infiniteQueryOptions,
  type InfiniteData,
  type QueryClient,
  useInfiniteQuery,
} from '@tanstack/react-query';
import { answerOf, api } from '../api/client';
import { useCaller } from './caller';

/** A task that waits for an answer which the caller may give. */
export type InboxTask = TenantSchemas['TaskSummary'];
/** Identifies a question: a later question of the task has another time. */
type Question = Pick<InboxTask, 'task_id' | 'updated_at'>;
type WaitingPage = Awaited<ReturnType<typeof readPage>>;

/** How often the oldest waiting tasks are read again, in ms. */
const REFRESH_MS = 15_000;
/** A page of the API. Further ones are read while the list is open. */
const PAGE_SIZE = 50;
const QUERY_KEY = ['waiting-tasks'];

const readPage = (cursor: string, signal: AbortSignal) =>
  answerOf(
    api.GET('/v1/tasks', {
      params: { query: { answerable: true, limit: PAGE_SIZE, ...(cursor !== '' && { cursor }) } },
      signal,
    }),
  );

/** Identifies a question: its task may ask another one later. */
export const questionKey = ({ task_id: id, updated_at: at = '' }: Question): string => `${id} ${at}`;

/** Questions that were answered in this tab. A list may come from a replica that does not have it yet. */
const answered = new Set<string>();

const without = (pages: readonly WaitingPage[]): InboxTask[] =>
  pages.flatMap(({ tasks }) => tasks).filter((task) => !answered.has(questionKey(task)));

const waitingQuery = infiniteQueryOptions({
  queryKey: QUERY_KEY,
  queryFn: ({ pageParam, signal }) => readPage(pageParam, signal),
  initialPageParam: '',
  getNextPageParam: ({ next_cursor: next }) => next ?? undefined,
  refetchInterval: REFRESH_MS,
});

/** What waits for the caller, the oldest first. The page and the badge of the navigation read it once for both. */
export function useWaitingTasks() {
  const isCaller = useCaller().can('agents:call');
  const { data, ...query } = useInfiniteQuery({ ...waitingQuery, enabled: isCaller });
  return { ...query, tasks: data && without(data.pages) };
}

/** Takes an answered question out of the list at once. */
export function noteAnswered(queryClient: QueryClient, question: Question): void {
  answered.add(questionKey(question));
  queryClient.setQueryData<InfiniteData<WaitingPage, string>>(
    QUERY_KEY,
    (data) => data && { ...data, pages: data.pages.map((page) => ({ ...page, tasks: without([page]) })) },
  );
  void queryClient.invalidateQueries({ queryKey: QUERY_KEY });
}
