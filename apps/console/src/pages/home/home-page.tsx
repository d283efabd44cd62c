import { Anchor, List, Paper, SimpleGrid, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { answerOf, api } from '../../api/client';
import { COMMAND_LINE } from '../../command-line';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { FailedShare } from '../../components/failed-share';
import { Page } from '../../components/page';
import { Section } from '../../components/section';
import { useCaller } from '../../session/caller';
import { useWaitingTasks } from '../../session/waiting-tasks';
import { useAgentNames } from '../../components/agent-names';
import { durationText } from '../../components/duration';
import { moneyIn, usageQuery } from '../usage/usage-query';
import { healthText, untaken } from '../webhooks/health';
import { DaysChart } from './days-chart';
import { failingAgents, lastDays, troubleOf } from './trouble';

const DAYS = 14;
const WEEK = 7;
/** Lines of each list. */
const MAX_LINES = 5;
/** How often the page is read again, in ms. */
const REFRESH_MS = 30_000;
/** Schedules and webhooks that are looked at: the first page of each. */
const PAGE = 100;
const NUMBER = new Intl.NumberFormat();

/** The outcomes of the tasks of the last days, and what needs attention. */
export function HomePage() {
  const { can } = useCaller();
  const days = useQuery({ ...usageQuery('day', DAYS), refetchInterval: REFRESH_MS });
  if (days.error) return <ErrorView error={days.error} retry={() => void days.refetch()} />;
  if (!days.data) return <Skeleton height="12rem" aria-label="Loading" role="status" />;
  const { usage, currency } = days.data;
  const all = lastDays(usage, DAYS, Date.now());
  const week = all.slice(-WEEK);
  const [tasks, failed] = [sum(week.map((day) => day.tasks)), sum(week.map((day) => day.failed))];
  const cost = sum(
    usage.filter(({ key }) => week.some(({ day }) => day === key)).map((day) => day.cost ?? 0),
  );
  return (
    <Page title="Home">
      {all.every((day) => day.tasks === 0) ? (
        <EmptyState title={`No tasks in the last ${DAYS} days`} command={`${COMMAND_LINE} send echo "Hello"`}>
          Send a message to an agent, here or in the playground.
        </EmptyState>
      ) : (
        <Section title={`Tasks of the last ${DAYS} days`}>
          <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm" maw="56rem">
            <Figure label={`Tasks in ${WEEK} days`}>{NUMBER.format(tasks)}</Figure>
            <Figure label={`Failed in ${WEEK} days`}>
              <Failed of={{ tasks, failed }} />
            </Figure>
            {currency !== null && <Figure label={`Cost in ${WEEK} days`}>{moneyIn(currency)(cost)}</Figure>}
            <Waiting />
          </SimpleGrid>
          <DaysChart days={all} />
          <Text size="sm">
            The lower part of a bar has failed. <Way to="/usage">All numbers</Way>
          </Text>
        </Section>
      )}
      <Stack gap="lg" mt="xs">
        <Agents />
        <Parked />
        {can('tasks:read', 'schedules:write') && <Schedules />}
        {can('admin') && <Webhooks />}
      </Stack>
    </Page>
  );
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

const Figure = ({ label, children }: { label: string; children: ReactNode }) => (
  <Paper withBorder px="md" py="sm" radius="md">
    <Text size="xs" c="dimmed">
      {label}
    </Text>
    <Text fz={{ base: 'lg', sm: 'xl' }} fw={700} component="div">
      {children}
    </Text>
  </Paper>
);

/** How many tasks have failed, and the way to them. */
function Failed({ of }: { of: { tasks: number; failed: number } }) {
  if (of.tasks === 0) return '–';
  const share = <FailedShare of={of} mayWrap />;
  if (of.failed === 0) return share;
  return (
    <Anchor
      renderRoot={(props) => <Link to="/tasks" search={{ state: 'failed', since: '7d' }} {...props} />}
      inherit
      // The share may be red: a line in the colour of links would be another.
      c="inherit"
      underline="always"
    >
      {share}
    </Anchor>
  );
}

const Way = ({ to, inherit = false, children }: { to: string; inherit?: boolean; children: ReactNode }) => (
  <Anchor component={Link} to={to} {...(inherit ? { inherit } : { size: 'sm' })} underline="always">
    {children}
  </Anchor>
);

/** How many tasks wait for the caller. */
function Waiting() {
  const { tasks = [], hasNextPage } = useWaitingTasks();
  if (tasks.length === 0) return null;
  return (
    <Figure label="Waits for you">
      <Way to="/inbox" inherit>
        {tasks.length}
        {hasNextPage && '+'}
      </Way>
    </Figure>
  );
}

/** The first lines of a list, and that there are more. */
function Trouble({
  title,
  none,
  lines,
  all,
}: {
  title: string;
  none: string;
  lines: ReactNode[];
  all: string;
}) {
  return (
    <Section title={title}>
      {lines.length === 0 ? (
        <Text size="sm">{none}</Text>
      ) : (
        <List size="sm" listStyleType="none" spacing={4}>
          {lines.slice(0, MAX_LINES)}
        </List>
      )}
      {lines.length > MAX_LINES && <Way to={all}>All {lines.length}</Way>}
    </Section>
  );
}

function Agents() {
  const names = useAgentNames();
  const { data } = useQuery({ ...usageQuery('agent', WEEK), refetchInterval: REFRESH_MS });
  if (!data) return null;
  const lines = failingAgents(data.usage).map((of) => {
    const name = names.get(of.key) ?? of.key;
    return (
      <List.Item key={of.key}>
        <Anchor
          renderRoot={(props) => <Link to="/tasks" search={{ agent: name, state: 'failed' }} {...props} />}
          size="sm"
          underline="always"
          aria-label={`Failed tasks of ${name}`}
        >
          {name}
        </Anchor>{' '}
        <FailedShare of={of} />
        {of.p95_seconds !== undefined && `, 95% within ${durationText(of.p95_seconds * 1_000)}`}
      </List.Item>
    );
  });
  const none = `No task has failed in the last ${WEEK} days.`;
  return <Trouble title="Agents that fail" none={none} lines={lines} all="/agents" />;
}

/** Tasks that a deploy has stopped. Nothing is shown while there are none. */
function Parked() {
  const names = useAgentNames();
  const { data } = useQuery({
    queryKey: ['home', 'parked'],
    queryFn: () => answerOf(api.GET('/v1/tasks', { params: { query: { parked: true, limit: PAGE } } })),
    refetchInterval: REFRESH_MS,
  });
  if (!data || data.tasks.length === 0) return null;
  const lines = data.tasks.map(({ task_id: id, agent_id: agent, parked }) => (
    <List.Item key={id}>
      <Way to={`/tasks/${id}`}>{names.get(agent) ?? agent}</Way> {parked?.problem}
    </List.Item>
  ));
  return <Trouble title="Parked tasks" none="None." lines={lines} all="/tasks" />;
}

function Schedules() {
  const { data } = useQuery({
    queryKey: ['home', 'schedules'],
    queryFn: () => answerOf(api.GET('/v1/schedules', { params: { query: { limit: PAGE } } })),
    refetchInterval: REFRESH_MS,
  });
  if (!data) return null;
  const lines = data.schedules.flatMap((schedule) => {
    const trouble = troubleOf(schedule);
    if (trouble === undefined) return [];
    return [
      <List.Item key={schedule.id}>
        <Way to="/schedules">{schedule.name}</Way> {trouble}
      </List.Item>,
    ];
  });
  return <Trouble title="Schedules in trouble" none="Every schedule works." lines={lines} all="/schedules" />;
}

function Webhooks() {
  const { data } = useQuery({
    queryKey: ['home', 'webhooks'],
    queryFn: () => answerOf(api.GET('/v1/webhooks', { params: { query: { limit: PAGE } } })),
    refetchInterval: REFRESH_MS,
  });
  if (!data) return null;
  const lines = data.webhooks
    .filter(({ health }) => untaken(health) > 0)
    .map(({ id, url, health }) => (
      <List.Item key={id} style={{ overflowWrap: 'anywhere' }}>
        <Way to={`/webhooks/${id}`}>{url}</Way> {healthText(health)}
      </List.Item>
    ));
  return (
    <Trouble
      title="Receivers in trouble"
      none="Every receiver takes its events."
      lines={lines}
      all="/webhooks"
    />
  );
}
