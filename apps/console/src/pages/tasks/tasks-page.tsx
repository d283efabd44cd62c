import { Button, Group, NativeSelect, Text, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef } from 'react';
import { answerOf, api } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import { queryOf, readFilters, SINCE, type TaskFilters } from './filters';
import { durationText, isTerminal, lengthOf, type ListedTask, STATES, StateBadge } from './task-words';
import styles from './tasks.module.css';

const route = getRouteApi('/app/tasks');
const ROW_PX = 40;
/** How often the newest tasks are read again, in ms. */
const REFRESH_MS = 4_000;
/** The next page is read when so few rows are left below. */
const ROWS_AHEAD = 50;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TITLES = ['State', 'Task', 'Agent', 'Context', 'Owner', 'Age', 'Duration', 'Usage'];

/** The tasks that the caller sees, the newest status first: live, and however many there are. */
export function TasksPage() {
  // The router adds what nobody has validated.
  const search = route.useSearch();
  const filters = useMemo(() => readFilters(search), [search]);
  const { tasks, total, error, isPending, hasMore, isFetchingMore, readMore, retry } = useTasks(filters);
  const names = useAgentNames();
  const shown = useMemo(() => matching(tasks, filters.text, names), [tasks, filters.text, names]);
  const hasFilters = Object.keys(filters).length > 0;
  return (
    <Page title="Tasks">
      <Filters filters={filters} />
      {error && <ErrorView error={error} retry={retry} />}
      {!isPending && shown.length === 0 && !error && (
        <NoTasks hasFilters={hasFilters} isSearch={filters.text !== undefined} loaded={total} />
      )}
      {shown.length > 0 && (
        <TaskTable tasks={shown} names={names} readMore={hasMore && !isFetchingMore ? readMore : undefined} />
      )}
      <Text size="sm" role="status">
        {shown.length} tasks{hasMore ? ' loaded; scroll for older ones' : ''}
      </Text>
    </Page>
  );
}

/** Pages as they are scrolled to. The first page is read again and again, and its tasks are the latest word. */
function useTasks(filters: TaskFilters) {
  const { text: _, ...asked } = filters;
  const key = JSON.stringify(asked);
  const read = (cursor: string, signal: AbortSignal) =>
    answerOf(
      api.GET('/v1/requests', {
        params: { query: { ...queryOf(asked, Date.now()), ...(cursor !== '' && { cursor }) } },
        signal,
      }),
    );
  const pages = useInfiniteQuery({
    queryKey: ['tasks', key],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: next }) => next ?? undefined,
    staleTime: Infinity,
    gcTime: 0,
  });
  const newest = useQuery({
    queryKey: ['tasks-newest', key],
    queryFn: ({ signal }) => read('', signal),
    refetchInterval: REFRESH_MS,
    enabled: pages.isSuccess,
    staleTime: 0,
    gcTime: 0,
  });
  const tasks = useMemo(() => {
    const byId = new Map<string, ListedTask>();
    for (const task of newest.data?.requests ?? []) byId.set(task.request_id, task);
    for (const page of pages.data?.pages ?? [])
      for (const task of page.requests) if (!byId.has(task.request_id)) byId.set(task.request_id, task);
    return [...byId.values()];
  }, [newest.data, pages.data]);
  return {
    tasks,
    total: tasks.length,
    error: pages.error ?? newest.error,
    isPending: pages.isPending,
    hasMore: pages.hasNextPage,
    isFetchingMore: pages.isFetchingNextPage,
    readMore: () => void pages.fetchNextPage(),
    retry: () => void pages.refetch(),
  };
}

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

function matching(
  tasks: readonly ListedTask[],
  text: string | undefined,
  names: ReadonlyMap<string, string>,
): readonly ListedTask[] {
  if (text === undefined) return tasks;
  const wanted = text.toLowerCase();
  return tasks.filter((task) =>
    [task.request_id, task.context_id, task.owner ?? '', task.agent_id, names.get(task.agent_id) ?? '']
      .concat((task.approvals ?? []).map(({ tool }) => tool))
      .some((value) => value.toLowerCase().includes(wanted)),
  );
}

function Filters({ filters }: { filters: TaskFilters }) {
  const navigate = useNavigate();
  const change = (changed: Partial<Record<keyof TaskFilters, string>>) =>
    void navigate({ to: '/tasks', search: readFilters({ ...filters, ...changed }), replace: true });
  const changeLater = useDebouncedCallback(change, 250);
  const search = (text: string) => {
    const id = text.trim();
    if (UUID.test(id)) void navigate({ to: '/tasks/$id', params: { id } });
  };
  return (
    <search>
      <Group align="end" gap="sm">
        <TextInput
          label="Find in the loaded tasks"
          description="Enter opens a task by its id"
          placeholder="id, context, owner, agent"
          defaultValue={filters.text ?? ''}
          onChange={({ currentTarget }) => changeLater({ text: currentTarget.value })}
          onKeyDown={({ key, currentTarget }) => key === 'Enter' && search(currentTarget.value)}
        />
        <NativeSelect
          label="State"
          value={filters.state ?? ''}
          onChange={({ currentTarget }) => change({ state: currentTarget.value })}
          data={[{ value: '', label: 'any' }, ...STATES]}
        />
        <NativeSelect
          label="Since"
          value={filters.since ?? ''}
          onChange={({ currentTarget }) => change({ since: currentTarget.value })}
          data={[{ value: '', label: 'any time' }, ...Object.keys(SINCE)]}
        />
        <TextInput
          label="Agent"
          placeholder="slug or id"
          defaultValue={filters.agent ?? ''}
          onChange={({ currentTarget }) => changeLater({ agent: currentTarget.value })}
        />
        <TextInput
          label="Owner"
          placeholder="token:…"
          defaultValue={filters.owner ?? ''}
          onChange={({ currentTarget }) => changeLater({ owner: currentTarget.value })}
        />
        {Object.keys(filters).length > 0 && (
          <Button variant="default" component={Link} to="/tasks" reloadDocument>
            Clear
          </Button>
        )}
      </Group>
    </search>
  );
}

function NoTasks(props: { hasFilters: boolean; isSearch: boolean; loaded: number }) {
  if (props.isSearch && props.loaded > 0) {
    return (
      <EmptyState title="No loaded task has this text">
        The search looks at the {props.loaded} tasks that are loaded. Clear it and scroll to load older ones.
      </EmptyState>
    );
  }
  if (props.hasFilters) {
    return <EmptyState title="No task is like this">Change a filter, or clear all of them.</EmptyState>;
  }
  return (
    <EmptyState title="No tasks yet" command={'npx baton send echo "Hello"'}>
      A task begins when somebody sends a message to an agent. Send one, and it appears here.
    </EmptyState>
  );
}

function TaskTable({
  tasks,
  names,
  readMore,
}: {
  tasks: readonly ListedTask[];
  names: ReadonlyMap<string, string>;
  readMore: (() => void) | undefined;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: tasks.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
    getItemKey: (index) => tasks[index]?.request_id ?? index,
  });
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= tasks.length - ROWS_AHEAD) readMore?.();
  }, [last, tasks.length, readMore]);
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      role="table"
      aria-label="Tasks"
      aria-rowcount={tasks.length + 1}
      tabIndex={0}
    >
      <div className={styles.head} role="row" aria-rowindex={1}>
        {TITLES.map((title) => (
          <div key={title} role="columnheader">
            {title}
          </div>
        ))}
      </div>
      <div role="rowgroup" className={styles.body} style={{ height: rows.getTotalSize() }}>
        {items.map(({ index, start, key }) => {
          const task = tasks[index];
          return (
            task && (
              <div
                key={key}
                role="row"
                aria-rowindex={index + 2}
                className={styles.row}
                style={{ height: ROW_PX, transform: `translateY(${start}px)` }}
              >
                <Cells task={task} agent={names.get(task.agent_id) ?? task.agent_id} />
              </div>
            )
          );
        })}
      </div>
    </div>
  );
}

function Cells({ task, agent }: { task: ListedTask; agent: string }) {
  const { request_id: id, context_id: context, owner, usage, created_at: createdAt, state } = task;
  const length = isTerminal(state) ? lengthOf(task) : undefined;
  return (
    <>
      <div role="cell">
        <StateBadge state={state} />
      </div>
      <div role="cell">
        <Link to="/tasks/$id" params={{ id }} className={styles.link}>
          {id}
        </Link>
      </div>
      <div role="cell">{agent}</div>
      <div role="cell">{context}</div>
      <div role="cell">{owner ?? '–'}</div>
      <div role="cell">
        {createdAt === undefined ? '–' : durationText(Date.now() - Date.parse(createdAt))}
      </div>
      <div role="cell">{length === undefined ? '–' : durationText(length)}</div>
      <div role="cell">{usage ? `${usage.input_tokens} → ${usage.output_tokens}` : '–'}</div>
    </>
  );
}
