import { Button, Card, Code, Group, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { TenantSchemas } from '@baton/contract';
import { COMMAND_LINE } from '../../command-line';
import { answerOf, api } from '../../api/client';
import { SERVER_URL } from '../../base';
import { ConfirmButton } from '../../components/confirm-button';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { Json, type Part, PartView } from '../../components/part-view';
import { Section } from '../../components/section';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { usePrincipalName } from '../../session/principal-names';
import { useAgentNames } from '../agents/agent-names';
import { curlOf, HIDDEN_TOKEN } from '../playground/exchange';
import { AnswerForm } from './answer-form';
import { type Artifact, kindOf, type Message } from '../../a2a/artifacts';
import { type Approval, approvalOf, entriesOf, type Entry, messagesOfCaller } from './log-entries';
import { type LogEvent, type TaskLog, useTaskLog } from './task-log';
import { Trace } from './task-trace';
import { MAX_MODEL_CALLS, ModelCalls, Runs, Steps } from './task-work';
import { isTerminal, isWaiting } from '../../a2a/task-states';
import { lengthText, statusReason, shortId, StateBadge, type Task } from './task-words';
import styles from './tasks.module.css';

const route = getRouteApi('/app/tasks/$id');
/** Entries of the timeline that are shown at first: the newest. */
const SHOWN_ENTRIES = 200;
/** Events of an entry whose JSON is shown. */
const MAX_RAW = 100;

/** A task: what it waits for, what it has made, and its log as it grows. */
export function TaskPage() {
  const { id } = route.useParams();
  const {
    data: task,
    error,
    refetch,
  } = useQuery({
    queryKey: ['task', id],
    queryFn: ({ signal }) => answerOf(api.GET('/v1/tasks/{id}', { params: { path: { id } }, signal })),
  });
  const log = useTaskLog(id);
  return (
    <Page title={`Task ${shortId(id)}`} actions={task && <Actions task={task} />}>
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {task && (
        <Stack gap="lg">
          <Facts task={task} log={log} />
          {isWaiting(task.state) && (
            <AnswerForm key={task.updated_at} task={task} question={questionOf(task)} />
          )}
          <Trace task={task} />
          <Console task={task} />
          <Artifacts artifacts={log.artifacts} />
          <Timeline task={task} log={log} />
          <ModelCalls task={task} />
          <Steps task={task} />
          <Descendants task={task} />
          <Runs task={task} />
          <Copies task={task} first={log.first} />
        </Stack>
      )}
    </Page>
  );
}

/** The parts of the message with which a task asks. */
function questionOf({ task }: Task): readonly Part[] {
  const { status } = task as { status?: { message?: Message } };
  return status?.message?.parts ?? [];
}

function Actions({ task: { task_id: id, state } }: { task: Task }) {
  const navigate = useNavigate();
  const params = { params: { path: { id } } };
  const again = useMutation({
    mutationFn: () => answerOf(api.POST('/v1/tasks/{id}/send-again', params)),
    onSuccess: (made) => navigate({ to: '/tasks/$id', params: { id: made.task_id } }),
  });
  return (
    <>
      {!isTerminal(state) && (
        <ConfirmButton
          size="sm"
          label="Cancel the task"
          question="Cancel this task?"
          dismiss="Keep it running"
          act={() => answerOf(api.POST('/v1/tasks/{id}/cancel', params))}
        >
          It cannot go on afterwards. What its agent has done so far is not undone.
        </ConfirmButton>
      )}
      <Button variant="default" loading={again.isPending} onClick={() => again.mutate()}>
        Send again
      </Button>
      <Button variant="default" component={Link} to={`/tasks/${id}/compare`}>
        Compare
      </Button>
      {again.error && <ErrorView error={again.error} />}
    </>
  );
}

function Facts({ task, log: { artifacts, last } }: { task: Task; log: TaskLog }) {
  const names = useAgentNames();
  const canReadAgents = useCaller().can('agents:read');
  const nameOf = usePrincipalName();
  const { parent_id: parent, owner } = task;
  // The newest is the first.
  const [run] = task.runs;
  const slug = names.get(task.agent_id);
  const reason = statusReason(task);
  const length = lengthText(task);
  const approvals = useMemo(() => decisionsOf(artifacts), [artifacts]);
  const facts: [string, React.ReactNode][] = [
    ['State', <StateBadge key="state" state={task.state} />],
    ...(reason === undefined ? [] : [['Reason', reason] as [string, string]]),
    ['Id', <Code key="id">{task.task_id}</Code>],
    [
      'Agent',
      slug !== undefined && canReadAgents ? (
        <Link key="agent" to="/agents/$agent" params={{ agent: slug }} className={styles.link}>
          {slug}
        </Link>
      ) : (
        (slug ?? task.agent_id)
      ),
    ],
    [
      'Context',
      <Link
        key="context"
        to="/tasks"
        search={{ agent: task.agent_id, context: task.context_id }}
        className={styles.link}
      >
        {task.context_id}
      </Link>,
    ],
    ['Owner', owner === null ? 'an earlier release made it' : ownerText(owner, nameOf(owner))],
    ...(run?.state === 'running' && run.worker_id !== null
      ? [['Worker', <Code key="worker">{run.worker_id}</Code>] as [string, React.ReactNode]]
      : []),
    ['Created', <Time key="created" at={task.created_at ?? null} />],
    ['Updated', <Time key="updated" at={task.updated_at ?? null} />],
    ...(length === undefined ? [] : [['Duration', length] as [string, string]]),
    ...usageFacts(task),
    ...approvals.map(
      ({ tool, decision }, i) =>
        [i === 0 ? 'Approvals' : '', <Decided key={i} tool={tool} of={decision} />] as [
          string,
          React.ReactNode,
        ],
    ),
    // The log is ahead of what was read of the task.
    ['Events', Math.max(task.events, last)],
    ...(task.agent_version === null
      ? []
      : [['Version of the agent', task.agent_version] as [string, number]]),
    ...(parent === null
      ? []
      : [['Parent', <TaskLink key={parent} id={parent} />] as [string, React.ReactNode]]),
  ];
  return (
    <Table withRowBorders={false} aria-label="About the task">
      <Table.Tbody>
        {facts.map(([name, value], i) => (
          <Table.Tr key={i}>
            <Table.Th w={{ base: '7rem', sm: '12rem' }} scope="row">
              {name}
            </Table.Th>
            <Table.Td>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** What the calls of models used and cost, those that failed too. Nothing, if there were none. */
function usageFacts({ model_calls: calls, currency }: Task): [string, string][] {
  if (calls.length === 0) return [];
  const sum = (of: (call: (typeof calls)[number]) => number): number =>
    calls.reduce((total, call) => total + of(call), 0);
  const tokens = `${sum((call) => call.input_tokens)} → ${sum((call) => call.output_tokens)} tokens`;
  const cost = `${Number(sum((call) => call.cost ?? 0).toFixed(6))} ${currency ?? ''}`;
  const isWhole = calls.length < MAX_MODEL_CALLS;
  return [
    [
      'Usage',
      `${tokens}${currency === null ? '' : `, ${cost}`}${isWhole ? '' : ' in the newest calls of models'}`,
    ],
  ];
}

const ownerText = (key: string, name: string): string => (name === key ? key : `${name} (${key})`);

const TaskLink = ({ id }: { id: string }) => (
  <Link to="/tasks/$id" params={{ id }} className={styles.link}>
    {id}
  </Link>
);

/** Descendants that the server shows. */
const MAX_DESCENDANTS = 500;

/** The tasks that the task has led to, as a tree. */
function Descendants({ task: { task_id: id, descendants } }: { task: Task }) {
  const names = useAgentNames();
  if (descendants.length === 0) return null;
  const children = new Map<string, typeof descendants>();
  for (const each of descendants)
    children.set(each.parent_id, [...(children.get(each.parent_id) ?? []), each]);
  const branch = (parent: string): React.ReactNode => (
    <ul className={styles.tree} aria-label={parent === id ? 'Child tasks' : `Child tasks of ${parent}`}>
      {children.get(parent)?.map(({ task_id: child, agent_id: agent, state }) => (
        <li key={child}>
          <Group gap="xs">
            <StateBadge state={state} />
            <Text size="sm" span>
              {names.get(agent) ?? agent}
            </Text>
            <TaskLink id={child} />
          </Group>
          {children.has(child) && branch(child)}
        </li>
      ))}
    </ul>
  );
  return (
    <Section title="Child tasks">
      {branch(id)}
      {descendants.length === MAX_DESCENDANTS && (
        <Text size="sm">
          These are the nearest {MAX_DESCENDANTS}. Open one of them to see what is below it.
        </Text>
      )}
    </Section>
  );
}

/**
 * The last error in the agent's code. Its stack is there for those who may change agents.
 * @param hasConsole the console of the agent is shown, which has the same lines as the error
 */
function Fault({ error, hasConsole }: { error: NonNullable<Task['error']>; hasConsole: boolean }) {
  return (
    <Section title="Error in the agent">
      <Text>{error.message}</Text>
      {typeof error.stack === 'string' && (
        <pre className={styles.raw} tabIndex={0}>
          {error.stack}
        </pre>
      )}
      {!hasConsole && error.output && error.output.length > 0 && (
        <pre className={styles.raw} tabIndex={0}>
          {error.output.join('\n')}
        </pre>
      )}
    </Section>
  );
}

/** Between two looks at the console of a task that goes on. */
const CONSOLE_POLL_MS = 3_000;

/** The last error in the agent's code, and what the code has written to its console, for those who may change agents. */
function Console({ task: { task_id: id, state, updated_at: at, error: fault } }: { task: Task }) {
  // The last lines are stored a moment after the end.
  const isComplete = (readAt: number): boolean =>
    isTerminal(state) && readAt > Date.parse(at ?? '') + CONSOLE_POLL_MS;
  const isAuthor = useCaller().can('agents:write');
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['task', id, 'console'],
    queryFn: ({ signal, pageParam }) =>
      answerOf(
        api.GET('/v1/tasks/{id}/logs', {
          params: { path: { id }, query: { limit: 100, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor,
    enabled: isAuthor,
    refetchInterval: (query) => (isComplete(query.state.dataUpdatedAt) ? false : CONSOLE_POLL_MS),
  });
  const lines = data?.pages.flatMap((page) => page.lines) ?? [];
  return (
    <>
      {fault && <Fault error={fault} hasConsole={lines.length > 0} />}
      {error && <ErrorView error={error} />}
      {lines.length > 0 && <ConsoleLines lines={lines} />}
      {hasNextPage && (
        <Button variant="default" size="xs" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more lines
        </Button>
      )}
    </>
  );
}

function ConsoleLines({ lines }: { lines: TenantSchemas['ConsoleLine'][] }) {
  return (
    <Section title="Console of the agent">
      <Table.ScrollContainer minWidth={500} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
        <Table aria-label="Console of the agent">
          <Table.Thead>
            <Table.Tr>
              {['Time', 'Level', 'Attempt', 'Line'].map((title) => (
                <Table.Th key={title}>{title}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {lines.map(({ position, at, level, attempt, text }) => (
              <Table.Tr key={position}>
                <Table.Td className={styles.time}>
                  <Time at={at} />
                </Table.Td>
                <Table.Td>{level}</Table.Td>
                <Table.Td>{attempt}</Table.Td>
                <Table.Td className={styles.line}>{text}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Section>
  );
}

function Artifacts({ artifacts }: { artifacts: readonly Artifact[] }) {
  const made = artifacts.filter((each) => kindOf(each) === undefined);
  if (made.length === 0) return null;
  return (
    <Section title="Artifacts">
      {made.map(({ artifactId, name, parts = [] }) => (
        <Card key={artifactId} withBorder padding="sm">
          <Text size="sm" fw={600}>
            {name ?? artifactId}
          </Text>
          <Parts parts={parts} />
        </Card>
      ))}
    </Section>
  );
}

const Parts = ({ parts }: { parts: readonly Part[] }) =>
  // The parts of a message have no names, and their order is fixed.
  parts.map((part, index) => <PartView key={index} part={part} />);

function Decision({ of: { approved, by } }: { of: Approval }) {
  const nameOf = usePrincipalName();
  if (by === null) return <Text size="sm">Nobody has answered in time</Text>;
  return (
    <Text size="sm" title={by}>
      {approved ? 'Approved' : 'Rejected'} by {nameOf(by)}
    </Text>
  );
}

/** A decision among the facts of a task. */
function Decided({ tool, of: decision }: { tool: string; of: Approval }) {
  return (
    <Group gap="xs">
      <Code>{tool}</Code>
      <Decision of={decision} />
      <Text size="sm" span>
        <Time at={decision.at} />
      </Text>
    </Group>
  );
}

/** What people have decided on calls of tools, the oldest first. */
const decisionsOf = (artifacts: readonly Artifact[]): { tool: string; decision: Approval }[] =>
  artifacts.flatMap((artifact) => {
    const decision = approvalOf(artifact);
    return decision ? [{ tool: artifact.name ?? artifact.artifactId, decision }] : [];
  });

const LOG_STATES = {
  live: 'It grows as the task goes on.',
  cut: 'The connection is gone. It is taken up again where it was.',
  ended: 'The task has ended.',
} as const;

function Timeline({ task, log }: { task: Task; log: TaskLog }) {
  const { events, first, last, times, state, error } = log;
  const messages = useMemo(() => messagesOfCaller(task), [task]);
  const entries = useMemo(() => entriesOf(events, messages, times), [events, messages, times]);
  const [isWhole, setWhole] = useState(false);
  // The message with which a task begins is always there.
  const begin = useMemo(() => entriesOf(first ? [first] : [], messages, times), [first, messages, times]);
  const later = entries[0]?.seq === first?.seq ? entries.slice(1) : entries;
  const shown = isWhole ? later : later.slice(-SHOWN_ENTRIES);
  const hidden = later.length - shown.length;
  const gone = (events[0]?.seq ?? 1) - (first?.seq ?? 0) - 1;
  const rows = (some: readonly Entry[]) => some.map((entry) => <EntryRow key={entry.seq} entry={entry} />);
  return (
    <Section title="Log">
      <Text size="sm" role="status">
        {LOG_STATES[state]}
      </Text>
      {error !== undefined && <ErrorView error={error} />}
      <ol className={styles.timeline} aria-label="Events of the task" data-last-event={last}>
        {rows(begin)}
        {gone > 0 && (
          <li>
            <Text size="sm">
              {gone} events before these are not shown. All of them:{' '}
              <Code>
                {COMMAND_LINE} tasks logs {task.task_id}
              </Code>
            </Text>
          </li>
        )}
        {hidden > 0 && (
          <li>
            <Button variant="default" size="xs" onClick={() => setWhole(true)}>
              Show {hidden} earlier entries
            </Button>
          </li>
        )}
        {rows(shown)}
      </ol>
    </Section>
  );
}

function EntryRow({ entry: { seq, title, approval, at, parts, raw } }: { entry: Entry }) {
  return (
    <li>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {seq} · {title}
        </Text>
        {approval && <Decision of={approval} />}
        {at !== undefined && (
          <Text size="sm" span>
            <Time at={at} />
          </Text>
        )}
      </Group>
      <Parts parts={parts} />
      {raw.length > 1 && <Text size="sm">{raw.length} pieces</Text>}
      <Raw seq={seq} events={raw} />
    </li>
  );
}

/** The JSON of an entry. It is made when it is opened. */
function Raw({ seq, events }: { seq: number; events: readonly LogEvent[] }) {
  const [isOpen, setOpen] = useState(false);
  const shown = events.slice(0, MAX_RAW);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary aria-label={`JSON of event ${seq}`}>
        <Text span size="xs">
          JSON
        </Text>
      </summary>
      {isOpen && <Json value={events.length === 1 ? events[0] : shown} />}
      {isOpen && events.length > MAX_RAW && (
        <Text size="xs">
          These are the first {MAX_RAW} of {events.length} events.
        </Text>
      )}
    </details>
  );
}

/** Calls that send the message of the task once more, for a terminal and for a program. The token is not in them. */
function Copies({ task, first }: { task: Task; first: LogEvent | undefined }) {
  const names = useAgentNames();
  const sent = first?.task?.history?.[0];
  if (!sent) return null;
  const url = `${SERVER_URL}/agents/${names.get(task.agent_id) ?? task.agent_id}/`;
  const { role, parts, metadata } = sent;
  // A message of the same id would be the same message.
  const message = () => ({ messageId: crypto.randomUUID(), role, parts, metadata });
  return (
    <Section title="Send it from a program">
      <Group>
        <CopyButton name="curl" text={() => curlFor(url, message())} />
        <CopyButton name="SDK code" text={() => sdkCodeFor(url, message())} />
      </Group>
    </Section>
  );
}

const curlFor = (url: string, message: Message): string =>
  curlOf({
    method: 'POST',
    url,
    requestHeaders: [
      ['content-type', 'application/json'],
      ['a2a-version', '1.0'],
      ['authorization', HIDDEN_TOKEN],
    ],
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
  });

/** As in docs/calling/clients.md. */
const sdkCodeFor = (url: string, message: Message): string =>
  `// npm install @a2a-js/sdk
import { Message } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

const authorization = \`Bearer \${process.env.BATON_TOKEN}\`;
const fetchImpl = (url, init) => fetch(url, { ...init, headers: { ...init?.headers, authorization } });
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
});
const client = await factory.createFromUrl(${JSON.stringify(url)});
const message = Message.fromJSON(${JSON.stringify(message, undefined, 2)});
console.log(JSON.stringify(await client.sendMessage({ message }), undefined, 2));
`;

function CopyButton({ name, text }: { name: string; text: () => string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
  };
  return (
    <Button variant="default" size="xs" onClick={() => void copy()}>
      {isCopied ? `Copied ${name}` : `Copy as ${name}`}
    </Button>
  );
}
