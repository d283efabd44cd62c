import { Alert, Anchor, Button, Checkbox, Group, NativeSelect, Text, TextInput } from '@mantine/core';
import { useDebouncedCallback, useMediaQuery } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import { useAgentNames } from '../../components/agent-names';
import { readFilters, SPANS, type TaskFilters, unknownFilters, untilChoices } from './filters';
import { heldOrder } from './held-order';
import { hitsOf } from './search-hits';
import { countsQuery, readTasks, tasksQuery } from './tasks-query';
import { usePrincipalName, usePrincipalNames } from '../../session/principal-names';
import { STATES } from '../../a2a/task-states';
import { lengthText } from '../../a2a/task-length';
import { ListedId, type ListedTask, statusReason, StateBadge } from './task-words';
import { tokensText } from '../../components/tokens-text';
import { UUID } from '../../components/uuid';
import { durationText } from '../../components/duration';
import styles from './tasks.module.css';
import { COMMAND_LINE } from '../../command-line';

const route = getRouteApi('/app/tasks');
const ROW_PX = 40;
/** `ROW_PX` on a narrow screen, where a row has two lines: see `tasks.module.css`. */
const NARROW_ROW_PX = 68;
const NARROW = '(max-width: 47.99em)';
/** How often the newest tasks are read again, in ms. */
const REFRESH_MS = 4_000;
/** How often a search is repeated, in ms. It costs the server more. */
const SEARCH_REFRESH_MS = 30_000;
/** The next page is read when so few rows are left below. */
const ROWS_AHEAD = 50;
const TITLES = ['Message', 'State', 'Task', 'Agent', 'Context', 'Owner', 'Age', 'Duration', 'Tokens'];

/** The tasks that the caller may read, the newest status first: live, without a maximum number. */
export function TasksPage() {
  // The router adds parameters that it has not validated.
  const search = route.useSearch();
  const filters = useMemo(() => readFilters(search), [search]);
  const entry = useMemo(historyEntry, [search]);
  const list = useTasks(filters, entry);
  const { tasks, searched, error, isPending, hasMore, isFetchingMore, readMore, retry } = list;
  const names = useAgentNames();
  const { can } = useCaller();
  const isSearch = filters.text !== undefined;
  const hasFilters = Object.keys(filters).length > 0;
  return (
    <Page title="Tasks">
      <Filters filters={filters} />
      <StateTabs filters={filters} />
      <UnknownFilters search={search} />
      {error && <ErrorView error={error} retry={retry} />}
      {!isPending && tasks.length === 0 && !error && <NoTasks hasFilters={hasFilters} />}
      {tasks.length > 0 && (
        <TaskTable
          key={entry}
          entry={entry}
          tasks={tasks}
          names={names}
          searched={filters.text}
          // A search continues when the user asks for it: it can read many tasks for few rows.
          readMore={hasMore && !isFetchingMore && !isSearch ? readMore : undefined}
        />
      )}
      <Group gap="sm">
        <Text size="sm" role="status">
          {isSearch
            ? `${tasks.length} tasks found in the newest ${searched.toLocaleString()}`
            : `${tasks.length} tasks${hasMore ? ' loaded; scroll for older ones' : ''}`}
        </Text>
        {can('agents:call') && tasks.length > 0 && (
          <Button
            size="compact-sm"
            variant="default"
            renderRoot={(props) => (
              <Link
                to="/bulk"
                search={{
                  ...(filters.agent !== undefined && { agent: filters.agent }),
                  ...(filters.state && { state: filters.state }),
                }}
                {...props}
              />
            )}
          >
            Change many
          </Button>
        )}
        {isSearch && hasMore && (
          <Button size="compact-sm" variant="default" loading={isFetchingMore} onClick={readMore}>
            Search older tasks
          </Button>
        )}
      </Group>
    </Page>
  );
}

/** Pages as they are scrolled to. The first page is read again and again, and its tasks are the latest word. */
function useTasks(filters: TaskFilters, entry: string) {
  const pages = useInfiniteQuery(tasksQuery(filters, entry));
  const [first] = pages.data?.pages ?? [];
  const newest = useQuery({
    queryKey: ['tasks-newest', JSON.stringify(filters), entry],
    queryFn: ({ signal }) => readTasks(filters, '', signal),
    refetchInterval: filters.text === undefined ? REFRESH_MS : SEARCH_REFRESH_MS,
    enabled: pages.isSuccess,
    // The first page is the latest word until then.
    ...(first && { initialData: first, initialDataUpdatedAt: pages.dataUpdatedAt }),
    staleTime: REFRESH_MS,
    gcTime: 0,
  });
  const tasks = useMemo(() => {
    const byId = new Map<string, ListedTask>();
    for (const task of newest.data?.tasks ?? []) byId.set(task.task_id, task);
    for (const page of pages.data?.pages ?? [])
      for (const task of page.tasks) if (!byId.has(task.task_id)) byId.set(task.task_id, task);
    return [...byId.values()];
  }, [newest.data, pages.data]);
  return {
    tasks,
    searched: (pages.data?.pages ?? []).reduce((sum, page) => sum + (page.searched ?? 0), 0),
    error: pages.error ?? newest.error,
    isPending: pages.isPending,
    hasMore: pages.hasNextPage,
    isFetchingMore: pages.isFetchingNextPage,
    readMore: () => void pages.fetchNextPage(),
    retry: () => void pages.refetch(),
  };
}

function Filters({ filters }: { filters: TaskFilters }) {
  const navigate = useNavigate();
  const change = (changed: Partial<Record<keyof TaskFilters, string>>) =>
    void navigate({ to: '/tasks', search: readFilters({ ...filters, ...changed }), replace: true });
  const changeLater = useDebouncedCallback(change, 250);
  const owners = useId();
  const search = (text: string) => {
    const id = text.trim();
    if (UUID.test(id)) void navigate({ to: '/tasks/$id', params: { id } });
  };
  return (
    <search>
      <Group align="end" gap="sm">
        <TextInput
          label="Search"
          w="15rem"
          placeholder="message, answer, error or id"
          maxLength={200}
          defaultValue={filters.text ?? ''}
          onChange={({ currentTarget }) => changeLater({ text: currentTarget.value })}
          onKeyDown={({ key, currentTarget }) => key === 'Enter' && search(currentTarget.value)}
        />
        <NativeSelect
          label="Since"
          value={filters.since ?? ''}
          onChange={({ currentTarget }) => change({ since: currentTarget.value })}
          data={[{ value: '', label: 'any time' }, ...Object.keys(SPANS)]}
        />
        <NativeSelect
          label="Before"
          value={filters.until ?? ''}
          onChange={({ currentTarget }) => change({ until: currentTarget.value })}
          data={[{ value: '', label: 'now' }, ...untilChoices(filters.since)]}
        />
        <TextInput
          label="Agent"
          w="7.5rem"
          placeholder="slug or id"
          defaultValue={filters.agent ?? ''}
          onChange={({ currentTarget }) => changeLater({ agent: currentTarget.value })}
        />
        <TextInput
          label="Context"
          w="7.5rem"
          placeholder={filters.agent === undefined ? 'agent first' : undefined}
          disabled={filters.agent === undefined}
          defaultValue={filters.context ?? ''}
          onChange={({ currentTarget }) => changeLater({ context: currentTarget.value })}
        />
        <TextInput
          label="Owner"
          w="7.5rem"
          placeholder="token:…"
          list={owners}
          defaultValue={filters.owner ?? ''}
          onChange={({ currentTarget }) => changeLater({ owner: currentTarget.value })}
        />
        <datalist id={owners}>
          {[...usePrincipalNames()].map(([key, name]) => (
            <option key={key} value={key} label={name} />
          ))}
        </datalist>
        <Checkbox
          label="Parked"
          checked={filters.parked === 'true'}
          onChange={({ currentTarget }) => change({ parked: currentTarget.checked ? 'true' : '' })}
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

/** A state of the list is counted so far. */
const MAX_COUNTED = 1_000;

/** The states of the list, each with its number of tasks. */
function StateTabs({ filters }: { filters: TaskFilters }) {
  const { state: _, ...others } = filters;
  const { data: counts } = useQuery(countsQuery(filters));
  const textOf = (count: number): string =>
    count < MAX_COUNTED ? count.toLocaleString() : `${MAX_COUNTED.toLocaleString()}+`;
  const tab = (state: TaskFilters['state']) => {
    const count = state && counts?.get(state);
    return (
      <Link
        key={state ?? 'all'}
        to="/tasks"
        search={{ ...others, ...(state && { state }) }}
        replace
        className={styles.tab}
        activeOptions={{ exact: true }}
      >
        {state ?? 'all'}
        {count !== undefined && ` ${textOf(count)}`}
      </Link>
    );
  };
  return (
    <nav aria-label="States of tasks" className={styles.tabs}>
      {[undefined, ...STATES].map(tab)}
    </nav>
  );
}

function NoTasks({ hasFilters }: { hasFilters: boolean }) {
  const { can } = useCaller();
  if (hasFilters) {
    return <EmptyState title="No task is like this">Change a filter, or clear all of them.</EmptyState>;
  }
  return (
    <EmptyState title="No tasks yet" command={`${COMMAND_LINE} send echo "Hello"`}>
      A message to an agent begins a task. Send one
      {can('agents:call') && (
        <>
          {' in the '}
          <Anchor component={Link} to="/playground" underline="always">
            Playground
          </Anchor>{' '}
          or in a terminal
        </>
      )}
      , and it appears here.
    </EmptyState>
  );
}

const idOf = ({ task_id: id }: ListedTask): string => id;

/** How far lists were scrolled, in px, by the entries of the browser's history. */
const offsets = new Map<string, number>();

/** The entry of the browser's history that is shown, as the router names it. */
const historyEntry = (): string => (window.history.state as { __TSR_key?: string } | null)?.__TSR_key ?? '';

function TaskTable({
  entry,
  tasks: list,
  names,
  searched,
  readMore,
}: {
  /** The list keeps the scroll position of this entry of the history. */
  entry: string;
  tasks: readonly ListedTask[];
  names: ReadonlyMap<string, string>;
  /** The text that was searched for. */
  searched: string | undefined;
  readMore: (() => void) | undefined;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isScrolled, setScrolled] = useState(() => (offsets.get(entry) ?? 0) > 0);
  const [isPointed, setPointed] = useState(false);
  const isHeld = isScrolled || isPointed;
  const shown = useRef<readonly string[]>([]);
  const { rows: tasks, fresh } = useMemo(
    () =>
      isHeld && shown.current.length > 0
        ? heldOrder(shown.current, list, idOf)
        : { rows: list as ListedTask[], fresh: 0 },
    [list, isHeld],
  );
  useEffect(() => {
    shown.current = tasks.map(idOf);
  }, [tasks]);
  const showFresh = (): void => {
    scroller.current?.scrollTo({ top: 0 });
    setScrolled(false);
    setPointed(false);
  };
  const isNarrow = useMediaQuery(NARROW, undefined, { getInitialValueInEffect: false }) ?? false;
  const rowPx = isNarrow ? NARROW_ROW_PX : ROW_PX;
  const rows = useVirtualizer({
    count: tasks.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 10,
    getItemKey: (index) => tasks[index]?.task_id ?? index,
    initialOffset: offsets.get(entry) ?? 0,
  });
  useEffect(() => rows.measure(), [rows, rowPx]);
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const nameOf = usePrincipalName();
  useEffect(() => {
    if (last >= tasks.length - ROWS_AHEAD) readMore?.();
  }, [last, tasks.length, readMore]);
  return (
    <>
      <div
        ref={scroller}
        onScroll={({ currentTarget: { scrollTop } }) => {
          offsets.set(entry, scrollTop);
          setScrolled(scrollTop > 0);
        }}
        onPointerEnter={() => setPointed(true)}
        onPointerLeave={() => setPointed(false)}
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
                  style={{ height: rowPx, transform: `translateY(${start}px)` }}
                >
                  <Cells
                    task={task}
                    agent={names.get(task.agent_id) ?? task.agent_id}
                    nameOf={nameOf}
                    searched={searched}
                  />
                </div>
              )
            );
          })}
        </div>
      </div>
      {fresh > 0 && (
        <Group>
          <Button size="compact-sm" variant="default" onClick={showFresh}>
            Show {fresh} new or changed {fresh === 1 ? 'task' : 'tasks'}
          </Button>
        </Group>
      )}
    </>
  );
}

/** Says which choices of the address there are not: the list is shown without them. */
function UnknownFilters({ search }: { search: Record<string, unknown> }) {
  const unknown = unknownFilters(search);
  if (unknown.length === 0) return null;
  return (
    <Alert variant="default" title="A filter of the address is not known" role="status">
      {unknown.map(([name, value]) => `${name}: ${value}`).join(', ')}. The list is shown without it. States
      are {STATES.join(', ')}.
    </Alert>
  );
}

function Cells({
  task,
  agent,
  nameOf,
  searched,
}: {
  task: ListedTask;
  agent: string;
  nameOf: (owner: string) => string;
  searched: string | undefined;
}) {
  const { task_id: id, context_id: context, owner, usage, created_at: createdAt, state } = task;
  const { first_message: message = 'No text', hit } = task;
  const reason = statusReason(task);
  return (
    <>
      <div
        role="cell"
        className={styles.message}
        title={reason === undefined ? message : `${message}\n${reason}`}
      >
        {/* It covers the whole row: a click anywhere opens the task. */}
        <Link to="/tasks/$id" params={{ id }} className={styles.rowLink}>
          <Marked text={message} searched={searched} />
          <span className={styles.unseen}> {id}</span>
        </Link>
        {reason !== undefined && (
          <div className={styles.reason}>
            <Marked text={reason} searched={searched} />
          </div>
        )}
        {hit?.text !== undefined && !(reason !== undefined && isHit(reason, searched)) && (
          <div className={styles.reason}>
            {HIT_PLACES[hit.in]}: <Marked text={hit.text} searched={searched} />
          </div>
        )}
      </div>
      <div role="cell">
        <StateBadge state={state} parked={task.parked} />
      </div>
      <div role="cell" title={id} className={styles.above}>
        <ListedId id={id} />
      </div>
      <div role="cell" title={agent}>
        {agent}
      </div>
      <div role="cell">
        <Link
          to="/tasks"
          search={{ agent: task.agent_id, context }}
          className={`${styles.link} ${styles.above}`}
          // The fields of the filters take their values once.
          reloadDocument
          title={context}
        >
          <span className={styles.unseen}>Tasks of the context </span>
          <ListedId id={context} />
        </Link>
      </div>
      <div role="cell" title={owner ?? undefined}>
        {owner ? (
          <Link
            to="/tasks"
            search={{ owner }}
            className={`${styles.link} ${styles.above}`}
            // The fields of the filters take their values once.
            reloadDocument
          >
            {nameOf(owner)}
          </Link>
        ) : (
          '–'
        )}
      </div>
      <div role="cell">
        {createdAt === undefined ? '–' : durationText(Date.now() - Date.parse(createdAt))}
      </div>
      <div role="cell">{lengthText(task) ?? '–'}</div>
      <div role="cell">{usage ? tokensText(usage.input_tokens, usage.output_tokens) : '–'}</div>
    </>
  );
}

/** Where a search has found a text. */
const HIT_PLACES: Readonly<Record<NonNullable<ListedTask['hit']>['in'], string>> = {
  task_id: 'Id',
  context_id: 'Context',
  first_message: 'Message',
  status_message: 'Status',
  error_message: 'Error',
  answer: 'Answer',
};

const isHit = (text: string, searched: string | undefined): boolean =>
  hitsOf(text, searched).some((piece) => piece.isHit);

/** A text with each place of what was searched for, in upper or lower case. */
function Marked({ text, searched }: { text: string; searched: string | undefined }) {
  return hitsOf(text, searched).map(({ part, isHit }, i) => (isHit ? <mark key={i}>{part}</mark> : part));
}
