import { Anchor, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, operatorApi } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { PagedTable } from '../../components/paged-table';
import { Section } from '../../components/section';
import { Time } from '../../components/time';
import { SimpleTable } from '../../components/simple-table';
import { queueQuery } from './workers';
import { COMMAND_LINE } from '../../command-line';

/** The explanation of each class of runs. */
const CLASSES = {
  waiting: 'wait for a dispatch slot of their tenant or of the workers',
  backoff: 'wait after a crash of their worker',
  queued: 'are on the queue, and wait for a worker',
  running: 'are executed by a worker',
  suspended: 'wait for other tasks, a time or a person, without a worker',
} as const;
const NUMBER = new Intl.NumberFormat();
const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** A duration in its largest unit. */
function lengthOf(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds >= each) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

const taskPath = ({ tenant, task_id: id }: { tenant: string; task_id: string }): string =>
  `/operators/task?tenant=${tenant}&id=${id}`;

/** How much work there is over all tenants, how long it waits, and what was given up. */
export function QueuePage() {
  const { data, error, refetch } = useQuery(queueQuery);
  return (
    <Page title="Queue">
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height="8rem" aria-label="Loading the queue" role="status" />}
      {data && (
        <>
          <SimpleTable
            name="Runs of all tenants"
            titles={['Class', 'Runs', 'Longest wait', 'Since']}
            rows={data.classes.map((each) => ({
              key: each.class,
              cells: [
                <>
                  <Text size="sm" fw={500}>
                    {each.class}
                  </Text>
                  <Text size="xs">{CLASSES[each.class]}</Text>
                </>,
                `${NUMBER.format(each.runs)}${each.more ? ' or more' : ''}`,
                each.oldest_at === null ? '–' : lengthOf(each.oldest_seconds),
                <Time key="since" at={each.oldest_at} />,
              ],
            }))}
          />
          <Text>
            {data.oldest_waiting ? (
              <>
                Oldest waiting run: task{' '}
                <Anchor component={Link} to={taskPath(data.oldest_waiting)} underline="always">
                  {data.oldest_waiting.task_id}
                </Anchor>{' '}
                of {data.oldest_waiting.tenant}, accepted <Time at={data.oldest_waiting.accepted_at} />
              </>
            ) : (
              'No run waits for a worker.'
            )}
          </Text>
          <Text>
            The live workers have {NUMBER.format(data.slots)} slots.{' '}
            {data.jobs
              ? `The queue has ${NUMBER.format(data.jobs.waiting)} waiting and ${NUMBER.format(data.jobs.active)} active jobs.`
              : 'The server of the queue does not answer: runs wait in Postgres.'}
          </Text>
          <Text>
            {NUMBER.format(data.dead_letters)} dead runs, {NUMBER.format(data.dead_pushes)} dead push
            notifications
          </Text>
        </>
      )}
      <Section title="Dead letters">
        <DeadLetters />
      </Section>
    </Page>
  );
}

/** Runs of all tenants that used up their attempts. Operators see no message. */
function DeadLetters() {
  return (
    <PagedTable
      name="Dead letters of all tenants"
      read={async (cursor) => {
        const page = await answerOf(
          operatorApi.GET('/v1/admin/dead-letters', { params: { query: { cursor } } }),
        );
        return { entries: page.dead_letters, next: page.next_cursor };
      }}
      idOf={({ run_id: id }) => id}
      columns={[
        { title: 'Tenant', cell: ({ tenant }) => tenant },
        {
          title: 'Task',
          cell: (letter) => (
            <Anchor component={Link} to={taskPath(letter)} size="sm" underline="always">
              {letter.task_id}
            </Anchor>
          ),
        },
        { title: 'Reason', cell: ({ reason }) => reason },
        { title: 'Attempts', cell: ({ attempts }) => attempts },
        { title: 'Given up', cell: ({ died_at: at }) => <Time at={at} /> },
        { title: 'Sent again', cell: ({ redelivered_at: at }) => <Time at={at} /> },
      ]}
      empty={
        <EmptyState title="No dead letters" command={`${COMMAND_LINE} dead-letters list`}>
          A run comes here when its worker has died on every attempt.
        </EmptyState>
      }
    />
  );
}
