import { Badge, Button, Code, Group, Stack, Text, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { TenantSchemas } from '@baton/contract';
import { isTerminal } from '../../a2a/task-states';
import { answerOf, api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { Json } from '../../components/part-view';
import { Section } from '../../components/section';
import { TaskLink } from '../../components/task-link';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { useAgentNames } from '../agents/agent-names';
import { CallRecord } from './call-record';
import { Labelled, Plain } from './labelled';
import { durationText, type Task } from './task-words';
import { type Bar, barsOf } from './trace-tree';
import styles from './task-trace.module.css';

/** Between two looks at the trace of a task that goes on. Its statuses make it look at once. */
const POLL_MS = 2_000;
/** Spans that are shown at first. */
const SHOWN_SPANS = 200;

type ModelCall = TenantSchemas['ModelCall'];

/** What happened in the task, on one axis of time. A span opens what is known of it. */
export function Trace({ task: { task_id: id, state } }: { task: Task }) {
  const { data, error } = useQuery({
    queryKey: ['task', id, 'trace'],
    queryFn: ({ signal }) => answerOf(api.GET('/v1/tasks/{id}/trace', { params: { path: { id } }, signal })),
    refetchInterval: isTerminal(state) ? false : POLL_MS,
  });
  const bars = useMemo(() => (data ? barsOf(data.spans, data.now) : []), [data]);
  const [isWhole, setWhole] = useState(false);
  const [open, setOpen] = useState<string>();
  if (error) return <ErrorView error={error} />;
  if (!data || bars.length === 0) return null;
  const shown = isWhole ? bars : bars.slice(0, SHOWN_SPANS);
  return (
    <Section title="Trace">
      <ol className={styles.trace} aria-label="Trace of the task">
        {shown.map((bar) => {
          const { span } = bar;
          const isOpen = open === span.id;
          return (
            <li key={span.id} className={styles.item}>
              <Row bar={bar} isOpen={isOpen} toggle={() => setOpen(isOpen ? undefined : span.id)} />
              {isOpen && (
                <Detail
                  taskId={id}
                  bar={bar}
                  call={span.model_call === undefined ? undefined : data.model_calls[span.model_call]}
                  currency={data.currency}
                />
              )}
            </li>
          );
        })}
      </ol>
      {bars.length > shown.length && (
        <Button variant="default" size="xs" onClick={() => setWhole(true)}>
          Show all {bars.length} spans
        </Button>
      )}
    </Section>
  );
}

function Row({ bar, isOpen, toggle }: { bar: Bar; isOpen: boolean; toggle: () => void }) {
  const { span, depth, left, width, ms } = bar;
  const names = useAgentNames();
  const name = span.kind === 'child' ? (names.get(span.name) ?? span.name) : span.name;
  return (
    <UnstyledButton className={styles.row} onClick={toggle} aria-expanded={isOpen}>
      <span className={styles.name} style={{ paddingInlineStart: `${depth}rem` }}>
        <span className={styles.kind}>{span.kind}</span> {span.kind === name ? '' : name}
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
  taskId,
  bar: { span },
  call,
  currency,
}: {
  taskId: string;
  bar: Bar;
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
        {call && (
          <Text size="sm">
            {call.input_tokens} → {call.output_tokens} tokens
            {call.cached_tokens > 0 && `, ${call.cached_tokens} of them cached`}
            {call.cost !== null && `, ${call.cost} ${currency}`}
          </Text>
        )}
        {call?.finish && (
          <Badge variant="outline" c="inherit" tt="none">
            {call.provider_finish ?? call.finish}
          </Badge>
        )}
      </Group>
      {span.error !== undefined && <Text c="red">{span.error}</Text>}
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
    </Stack>
  );
}

/** What a call of a model or tool has said. */
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
  const { model, tool } = data;
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
