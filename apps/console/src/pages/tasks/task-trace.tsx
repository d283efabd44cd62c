import { Badge, Code, Group, Stack, Text, UnstyledButton } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import {
  answerAt,
  answersOf,
  filterRows,
  type TenantSchemas,
  type TraceRow,
  traceRows,
} from '@baton/contract';
import type { Message } from '../../a2a/artifacts';
import { isTerminal } from '../../a2a/task-states';
import { answerOf, api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { Json, PartView } from '../../components/part-view';
import { Section } from '../../components/section';
import { TaskLink } from '../../components/task-link';
import { tokensText } from '../../components/tokens-text';
import { Time } from '../../components/time';
import { VirtualList } from '../../components/virtual-list';
import { useCaller } from '../../session/caller';
import { usePrincipalName } from '../../session/principal-names';
import { useAgentNames } from '../../components/agent-names';
import { CallRecord } from './call-record';
import { ForkButton } from './fork-button';
import { GivenAnswers } from './given-answers';
import { Labelled, Plain } from './labelled';
import { type Task } from './task-words';
import { TraceFilterBar } from './trace-filter';
import { traceFilterOf, type TraceSearch } from './trace-search';
import { durationText } from '../../components/duration';
import styles from './task-trace.module.css';

/** Between two reads of the trace of a task that has not ended. Each new status triggers a read at once. */
const POLL_MS = 1_000;
/** `POLL_MS` of a long trace, which takes longer to read. */
const LONG_POLL_MS = 10_000;
/** Spans from which a trace counts as long. */
const LONG_TRACE = 1_000;
/** Height of a row that is not open. */
const ROW_PX = 28;
/** A bar must be seen, however short its span is: a share of the axis. */
const MIN_WIDTH = 0.002;
/** Spans around a span by which its name is moved to the right. */
const MAX_INDENT = 12;

type ModelCall = TenantSchemas['ModelCall'];
type TraceAnswer = Awaited<ReturnType<typeof readTrace>>;

const readTrace = (id: string, signal: AbortSignal) =>
  answerOf(api.GET('/v1/tasks/{id}/trace', { params: { path: { id } }, signal }));

const traceQuery = (id: string, isLive: boolean) => ({
  queryKey: ['task', id, 'trace'],
  queryFn: ({ signal }: { signal: AbortSignal }) => readTrace(id, signal),
  refetchInterval: ({ state: { data } }: { state: { data?: TraceAnswer | undefined } }): number | false => {
    const spans = data?.spans ?? [];
    // It was read before the end of the task.
    const isBehind = !isLive && spans.some(({ kind, ended_at: end }) => kind === 'turn' && end === null);
    if (isLive || isBehind) return spans.length > LONG_TRACE ? LONG_POLL_MS : POLL_MS;
    // Deliveries are made after the end of the task, too.
    return spans.some(({ ended_at: end }) => end === null) ? LONG_POLL_MS : false;
  },
});

/** The traces of children by their ids, and why some cannot be read. A function of its own: React Query runs it when an answer changes. */
const tracesOf = (results: { data?: TraceAnswer | undefined; error: Error | null }[]) => ({
  answers: new Map(results.flatMap(({ data }) => (data ? [[data.task_id, data] as const] : []))),
  errors: results.flatMap(({ error }) => error ?? []),
});

/** A shorter trace is seen at once. */
const FILTERED_FROM = 12;
const NO_SEARCH: TraceSearch = {};

/**
 * What happened in the task, on one axis of time. A span opens what is known of it; that of a child opens its trace as well.
 * @param search the spans that are looked for
 * @param changeSearch unset: there is no search for spans
 */
export function Trace({
  task: { task_id: id, state },
  search = NO_SEARCH,
  changeSearch,
}: {
  task: Pick<Task, 'task_id' | 'state'>;
  search?: TraceSearch;
  changeSearch?: (search: TraceSearch) => void;
}) {
  const isLive = !isTerminal(state);
  const { data, error } = useQuery(traceQuery(id, isLive));
  // Once, and not in each row: a hook in every row makes the list slow to scroll.
  const names = useAgentNames();
  const nameOf = useCallback(
    ({ kind, name }: TraceRow['span']): string => (kind === 'child' ? (names.get(name) ?? name) : name),
    [names],
  );
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [childIds, setChildIds] = useState<readonly string[]>([]);
  const { answers, errors } = useQueries({
    queries: childIds.map((child) => traceQuery(child, isLive)),
    combine: tracesOf,
  });
  const { rows: all, ms: whole } = useMemo(
    () => traceRows(id, data ?? { spans: [], now: '' }, answers),
    [id, data, answers],
  );
  const filtered = useMemo(() => {
    const filter = traceFilterOf(search);
    return filter && filterRows(all, filter, nameOf);
  }, [all, search, nameOf]);
  if (error) return <ErrorView error={error} />;
  if (!data || all.length === 0) return null;
  const rows = filtered?.rows ?? all;
  const toggle = ({ key, span: { task_id: child } }: TraceRow): void => {
    const isOpen = open.has(key);
    setOpen(isOpen ? without(open, key) : new Set([...open, key]));
    if (child === undefined) return;
    setChildIds(isOpen ? childIds.filter((each) => each !== child) : [...new Set([...childIds, child])]);
  };
  return (
    <Section title="Trace">
      {errors.map((fault, i) => (
        <ErrorView key={i} error={fault} />
      ))}
      {changeSearch && (filtered || all.length >= FILTERED_FROM) && (
        <TraceFilterBar search={search} change={changeSearch} hits={filtered?.hits.size} spans={all.length} />
      )}
      <VirtualList name="Trace of the task" rows={rows} keyOf={({ key }) => key} estimate={ROW_PX}>
        {(row) => {
          const of = row.taskId === id ? data : answers.get(row.taskId);
          const { model_call: index } = row.span;
          return (
            <>
              <Row
                row={row}
                name={nameOf(row.span)}
                isAround={filtered !== undefined && !filtered.hits.has(row.key)}
                whole={whole}
                isOpen={open.has(row.key)}
                toggle={() => toggle(row)}
              />
              {open.has(row.key) && (
                <Detail
                  row={row}
                  call={index === undefined ? undefined : of?.model_calls[index]}
                  currency={data.currency}
                />
              )}
            </>
          );
        }}
      </VirtualList>
    </Section>
  );
}

const without = (keys: ReadonlySet<string>, key: string): ReadonlySet<string> =>
  new Set([...keys].filter((each) => each !== key));

function Row({
  row: { span, depth, start, ms },
  name,
  isAround,
  whole,
  isOpen,
  toggle,
}: {
  row: TraceRow;
  name: string;
  /** It does not match, and is around a span that does. */
  isAround: boolean;
  whole: number;
  isOpen: boolean;
  toggle: () => void;
}) {
  const left = Math.min(start / whole, 1 - MIN_WIDTH);
  const width = Math.min(Math.max(ms / whole, MIN_WIDTH), 1 - left);
  return (
    <UnstyledButton
      className={styles.row}
      data-around={isAround || undefined}
      onClick={toggle}
      aria-expanded={isOpen}
    >
      <span className={styles.name} style={{ paddingInlineStart: `${Math.min(depth, MAX_INDENT)}rem` }}>
        <span className={styles.kind}>{span.kind}</span> {name}
      </span>
      <span className={styles.axis} aria-hidden>
        <span
          className={styles.bar}
          data-state={span.state}
          data-kind={span.kind}
          style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
        />
      </span>
      <span className={styles.took}>{durationText(ms)}</span>
      <span className={styles.state} data-state={span.state}>
        {span.state}
      </span>
    </UnstyledButton>
  );
}

function Detail({
  row: { span, taskId },
  call,
  currency,
}: {
  row: TraceRow;
  call: ModelCall | undefined;
  currency: string | null;
}) {
  const caller = useCaller();
  const isAuthor = caller.can('agents:write');
  return (
    <Stack gap="xs" className={styles.detail}>
      <Group gap="md">
        <Text size="sm">
          <Time at={span.started_at} />
        </Text>
        {span.attempt !== undefined && <Text size="sm">Attempt {span.attempt}</Text>}
        {span.worker_id !== undefined && (
          <Text size="sm">
            Worker <Code>{span.worker_id}</Code>
          </Text>
        )}
        {span.task_id !== undefined && <TaskLink id={span.task_id} />}
        {span.unknown_outcome && <Text size="sm">Outcome was unknown: {span.unknown_outcome}</Text>}
        {span.answered_by !== undefined && <AnsweredBy principal={span.answered_by} />}
        {call && (
          <Text size="sm">
            {tokensText(call.input_tokens, call.output_tokens)} tokens
            {call.cached_tokens > 0 && `, ${call.cached_tokens} of them cached`}
            {call.cost !== null && `, ${call.cost} ${currency}`}
          </Text>
        )}
        {call?.finish && (
          <Badge variant="outline" c="inherit" tt="none">
            {call.is_summary ? 'summary of the conversation' : (call.provider_finish ?? call.finish)}
          </Badge>
        )}
      </Group>
      {span.error !== undefined && <Text c="red">{span.error}</Text>}
      {span.answered_by !== undefined && <Answered taskId={taskId} at={span.ended_at} />}
      {span.entry !== undefined && span.error === undefined && isAuthor && (
        <Said taskId={taskId} entry={span.entry} />
      )}
      {span.entry !== undefined &&
        call &&
        (caller.can('records:read') ? (
          <CallRecord taskId={taskId} entry={span.entry} />
        ) : (
          <Text size="sm">
            To see what the model was sent, sign in with a token that has the scope records:read.
          </Text>
        ))}
      {span.entry !== undefined && isAuthor && caller.can('agents:call') && (
        <Group>
          <ForkButton taskId={taskId} entry={span.entry} after={span.name} />
        </Group>
      )}
    </Stack>
  );
}

/** Who has answered a question. */
function AnsweredBy({ principal }: { principal: string }) {
  const nameOf = usePrincipalName();
  return (
    <Text size="sm" title={principal}>
      Answered by {nameOf(principal)}
    </Text>
  );
}

/** The answer to a question, which ended at this time. */
function Answered({ taskId, at }: { taskId: string; at: string | null }) {
  const { data, error } = useQuery({
    queryKey: ['task', taskId],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/v1/tasks/{id}', { params: { path: { id: taskId } }, signal })),
  });
  if (error) return <ErrorView error={error} />;
  const sent = data && answerAt<Message>(data, at);
  if (!sent) return null;
  const { answers, rest } = answersOf(sent.message, sent.asked);
  return (
    <div>
      <GivenAnswers answers={answers} />
      {/* The parts of a message have no names, and their order is fixed. */}
      {rest.map((part, i) => (
        <PartView key={i} part={part} />
      ))}
    </div>
  );
}

/** The output of a model or tool call, or the result of a step. */
function Said({ taskId, entry }: { taskId: string; entry: number }) {
  const { data, error } = useQuery({
    queryKey: ['call', taskId, entry],
    queryFn: ({ signal }) =>
      answerOf(
        api.GET('/v1/tasks/{id}/trace/{entry}', {
          params: { path: { id: taskId, entry: String(entry) } },
          signal,
        }),
      ),
    staleTime: Infinity,
  });
  if (error) return <ErrorView error={error} />;
  if (!data) return null;
  const { model, tool, step } = data;
  if (step)
    return (
      <Labelled name="Result">
        {step.result === undefined ? <Plain text="nothing" /> : <Json value={step.result} />}
      </Labelled>
    );
  if (tool)
    return (
      <>
        <Labelled name="Input">
          <Json value={tool.input} />
        </Labelled>
        <Labelled name="Output">
          {typeof tool.output === 'string' ? <Plain text={tool.output} /> : <Json value={tool.output} />}
        </Labelled>
      </>
    );
  if (!model) return <Text size="sm">An earlier release made this call, and has not kept what it said.</Text>;
  return (
    <>
      {model.reasoning !== '' && (
        <Labelled name="Reasoning">
          <Plain text={model.reasoning} />
        </Labelled>
      )}
      {model.text !== '' && (
        <Labelled name="Answer">
          <Plain text={model.text} />
        </Labelled>
      )}
      {model.calls.map(({ tool: name, input }, i) => (
        <Labelled key={i} name={`Calls ${name}`}>
          <Json value={input} />
        </Labelled>
      ))}
    </>
  );
}
