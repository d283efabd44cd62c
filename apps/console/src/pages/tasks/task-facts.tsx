import { Code, Group, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import type { Artifact, Message } from '../../a2a/artifacts';
import { isTerminal, isWaiting } from '../../a2a/task-states';
import { Section } from '../../components/section';
import { TaskLink } from '../../components/task-link';
import { tokensText } from '../../components/tokens-text';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { usePrincipalName } from '../../session/principal-names';
import { useAgentNames } from '../../components/agent-names';
import { Decision } from './decision';
import { type Approval, approvalOf } from './log-entries';
import type { TaskLog } from './task-log';
import { MAX_MODEL_CALLS } from './task-work';
import { lengthText } from '../../a2a/task-length';
import { StateBadge, statusReason, type Task } from './task-words';
import { durationText } from '../../components/duration';
import styles from './tasks.module.css';

type Fact = [name: string, value: React.ReactNode];

/** Characters of the message that are shown. */
const MAX_MESSAGE = 2_000;

/** The main facts of a task: its message, its state, how long it took, what it cost, and why it failed. */
export function Lead({ task, first }: { task: Task; first: TaskLog['first'] }) {
  const { state, error } = task;
  // The calls that wait have their own words below.
  const reason = task.approvals ? error?.message : reasonOf(task);
  const isBad = state === 'failed' || state === 'rejected' || error !== null;
  const message = messageText(first?.task?.history?.[0]);
  const facts: Fact[] = [
    ...(message === '' ? [] : [['Message', <MessageText key="message" text={message} />] as Fact]),
    ['Agent', <AgentLink key="agent" id={task.agent_id} />],
    ['State', <StateBadge key="state" state={state} parked={task.parked} />],
    ...(task.wakes_at === null ? [] : [['Asks until', <Time key="wakes" at={task.wakes_at} />] as Fact]),
    ...(task.reminders ?? []).map(
      (reminder) =>
        [
          reminder.kind === 'reminder' ? 'Reminder' : 'Escalation',
          <Reminded key={reminder.kind} of={reminder} />,
        ] as Fact,
    ),
    ...(reason === undefined
      ? []
      : [
          [
            isWaiting(state) ? 'Question' : 'Reason',
            <Text key="reason" size="sm" className={isBad ? styles.error : undefined}>
              {reason}
            </Text>,
          ] as Fact,
        ]),
    ...kinFacts(task),
    ...durationFacts(task),
    ...usageFacts(task),
  ];
  return <FactTable name="About the task" facts={facts} />;
}

/** Whether the task has failed with the error in its agent, and not with what came after it, such as a spending cap. */
function hasFailedWithError({ state, error, runs: [newest] }: Task): boolean {
  return (
    state === 'failed' &&
    error !== null &&
    error.run_id === newest?.run_id &&
    error.attempt === newest.attempt
  );
}

/** As in the list: the error in the agent has more details than the status, which every caller sees. */
const reasonOf = (task: Task): string | undefined =>
  hasFailedWithError(task) ? task.error?.message : (statusReason(task) ?? task.error?.message);

/** When webhooks are notified that the task waits, or were. */
function Reminded({
  of: { due_at: due, sent_at: sent, webhooks },
}: {
  of: NonNullable<Task['reminders']>[number];
}) {
  const notified = webhooks === 1 ? 'one webhook' : `${webhooks} webhooks`;
  if (sent === null) {
    if (due === null) return 'given up: no receiver has taken it';
    return (
      <>
        due <Time at={due} />
      </>
    );
  }
  if (webhooks === 0) {
    return (
      <>
        due <Time at={sent} />: there was no webhook
      </>
    );
  }
  return (
    <>
      sent to {notified} <Time at={sent} />
      {due !== null && (
        <>
          , the others are tried again <Time at={due} />
        </>
      )}
    </>
  );
}

/** The task that this one continues, and the one that continues it. */
function kinFacts(task: Task): Fact[] {
  const kin = {
    Continues: task.continues,
    'Fork of': task.fork_of,
    'Continued as': task.continued_as,
    'Undoes the steps of': task.undoes,
    'Steps undone by': task.undone_as,
  };
  return Object.entries(kin).flatMap(([name, id]): Fact[] =>
    id ? [[name, <TaskLink key={name} id={id} />]] : [],
  );
}

/** For a task that has not ended: how long it has taken so far. */
function durationFacts(task: Task): Fact[] {
  const length = lengthText(task);
  if (length !== undefined) return [['Duration', length]];
  const { created_at: from, state } = task;
  return from === undefined || isTerminal(state) ? [] : [['Duration', <SoFar key="duration" from={from} />]];
}

function SoFar({ from }: { from: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return `${durationText(now - Date.parse(from))} so far`;
}

const MessageText = ({ text }: { text: string }) => (
  <Text size="sm" lineClamp={3} className={styles.lead}>
    {text}
  </Text>
);

/** The text of a message, and the names of its files. */
function messageText(message: Message | undefined): string {
  const parts = (message?.parts ?? []) as { text?: string; data?: unknown; filename?: string }[];
  const texts = parts.map(({ text, data, filename }) => {
    if (text !== undefined) return text;
    return data === undefined ? `[${filename ?? 'file'}]` : JSON.stringify(data);
  });
  return texts.join(' ').slice(0, MAX_MESSAGE);
}

/** The slug of an agent, and the way to its page for callers that may see it. */
function AgentLink({ id }: { id: string }) {
  const slug = useAgentNames().get(id);
  const canReadAgents = useCaller().can('agents:read');
  if (slug === undefined || !canReadAgents) return slug ?? id;
  return (
    <Link to="/agents/$agent" params={{ agent: slug }} className={styles.link}>
      {slug}
    </Link>
  );
}

/** The other facts of a task. */
export function Facts({ task, log: { artifacts, last } }: { task: Task; log: TaskLog }) {
  const nameOf = usePrincipalName();
  const { parent_id: parent, owner } = task;
  // The newest is the first.
  const [run] = task.runs;
  const approvals = useMemo(() => decisionsOf(artifacts), [artifacts]);
  const facts: Fact[] = [
    ['Id', <Code key="id">{task.task_id}</Code>],
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
      ? [['Worker', <Code key="worker">{run.worker_id}</Code>] as Fact]
      : []),
    ['Created', <Time key="created" at={task.created_at ?? null} />],
    ['Updated', <Time key="updated" at={task.updated_at ?? null} />],
    ...approvals.map(
      ({ tool, decision }, i) =>
        [i === 0 ? 'Approvals' : '', <Decided key={i} tool={tool} of={decision} />] as Fact,
    ),
    // The log is ahead of what was read of the task.
    ['Events', Math.max(task.events, last)],
    ...(task.agent_version === null ? [] : [['Version of the agent', task.agent_version] as Fact]),
    ...(parent === null ? [] : [['Parent', <TaskLink key={parent} id={parent} />] as Fact]),
  ];
  return (
    <Section title="Details">
      <FactTable name="Details of the task" facts={facts} />
    </Section>
  );
}

const FactTable = ({ name: label, facts }: { name: string; facts: readonly Fact[] }) => (
  <Table withRowBorders={false} verticalSpacing={4} horizontalSpacing={0} aria-label={label}>
    <Table.Tbody>
      {facts.map(([name, value], i) => (
        <Table.Tr key={i}>
          <Table.Th
            w={{ base: '7rem', sm: '10rem' }}
            c="dimmed"
            fw={500}
            scope="row"
            style={{ verticalAlign: 'top' }}
          >
            {name}
          </Table.Th>
          <Table.Td>{value}</Table.Td>
        </Table.Tr>
      ))}
    </Table.Tbody>
  </Table>
);

/** What the model calls used and cost, those that failed too. Nothing, if there were none. */
function usageFacts({ model_calls: calls, currency }: Task): [string, string][] {
  if (calls.length === 0) return [];
  const sum = (of: (call: (typeof calls)[number]) => number): number =>
    calls.reduce((total, call) => total + of(call), 0);
  const tokens = `${tokensText(
    sum((call) => call.input_tokens),
    sum((call) => call.output_tokens),
  )} tokens`;
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

/** What people have decided on tool calls, the oldest first. */
const decisionsOf = (artifacts: readonly Artifact[]): { tool: string; decision: Approval }[] =>
  artifacts.flatMap((artifact) => {
    const decision = approvalOf(artifact);
    return decision ? [{ tool: artifact.name ?? artifact.artifactId, decision }] : [];
  });
