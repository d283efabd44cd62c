import { Alert, Button, Code, Modal, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { TenantSchemas } from '@baton/contract';
import { answerOf, api } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { PagedTable } from '../../components/paged-table';
import { RowActions } from '../../components/row-actions';
import { ScopedPage } from '../../components/scoped';
import { StateWord } from '../../components/state-word';
import { TaskLink } from '../../components/task-link';
import { Time } from '../../components/time';
import { useAgentNames } from '../../components/agent-names';

type ListedDelivery = TenantSchemas['WebhookDelivery'];

const route = getRouteApi('/app/webhooks/$id');
/** How often the list is read again, in ms. */
const REFRESH_MS = 5_000;

/** The colour of each state. The word is the state. */
const COLOURS: Readonly<Record<ListedDelivery['state'], string>> = {
  delivered: 'green',
  waiting: 'blue',
  retrying: 'orange',
  'given-up': 'red',
  ended: 'gray',
  idle: 'gray',
};

/** The notifications of a webhook, their tasks, and the answers of its receiver. */
export function DeliveriesPage() {
  const { id } = route.useParams();
  const names = useAgentNames();
  const [shown, setShown] = useState<string>();
  const client = useQueryClient();
  const { data: webhook, error } = useQuery({
    queryKey: ['webhooks', id],
    queryFn: () => answerOf(api.GET('/v1/webhooks/{id}', { params: { path: { id } } })),
  });
  const redeliver = useMutation({
    mutationFn: async (task: string | undefined) =>
      answerOf(api.POST('/v1/webhooks/{id}/redeliver', { params: { path: { id }, query: { task } } })),
    onSuccess: () => client.invalidateQueries(),
  });
  return (
    <ScopedPage
      title="Deliveries"
      scopes={['admin']}
      actions={
        <>
          <Button
            loading={redeliver.isPending && redeliver.variables === undefined}
            onClick={() => redeliver.mutate(undefined)}
          >
            Redeliver all that failed
          </Button>
          <Button variant="default" component={Link} to="/webhooks">
            All webhooks
          </Button>
        </>
      }
    >
      {error && <ErrorView error={error} />}
      {webhook && <Text style={{ overflowWrap: 'anywhere' }}>{webhook.url}</Text>}
      {redeliver.error && <ErrorView error={redeliver.error} />}
      {redeliver.data && (
        <Alert role="status" variant="default" title="Redelivery">
          {redeliver.data.tasks.length === 0
            ? 'There is nothing to deliver again, or a request is under way.'
            : `The events of ${redeliver.data.tasks.length} ${redeliver.data.tasks.length === 1 ? 'task' : 'tasks'} are delivered now.`}
        </Alert>
      )}
      {shown !== undefined && <Requests webhook={id} task={shown} close={() => setShown(undefined)} />}
      <PagedTable
        name={`Deliveries of ${id}`}
        refreshMs={REFRESH_MS}
        read={async (cursor) => {
          const query = { cursor };
          const page = await answerOf(
            api.GET('/v1/webhooks/{id}/deliveries', { params: { path: { id }, query } }),
          );
          return { entries: page.deliveries, next: page.next_cursor };
        }}
        idOf={({ task_id: task }) => task}
        columns={[
          { title: 'Task', cell: ({ task_id: task }) => <TaskLink id={task} /> },
          { title: 'Agent', cell: ({ agent_id: agent }) => names.get(agent) ?? agent },
          {
            title: 'State',
            cell: ({ state }) => <StateWord colour={COLOURS[state]} word={state.replace('-', ' ')} />,
          },
          { title: 'Last answer', cell: (delivery) => <LastAnswer of={delivery} /> },
          { title: 'Has events up to', cell: ({ delivered_event: event }) => event },
          { title: 'Events that wait', cell: ({ waiting }) => waiting },
          { title: 'Next try', cell: ({ next_at: at }) => <Time at={at} /> },
          {
            title: 'Actions',
            cell: ({ task_id: task }) => (
              <RowActions>
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`Requests about ${task}`}
                  onClick={() => setShown(task)}
                >
                  Requests
                </Button>
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`Redeliver ${task}`}
                  loading={redeliver.isPending && redeliver.variables === task}
                  onClick={() => redeliver.mutate(task)}
                >
                  Redeliver
                </Button>
              </RowActions>
            ),
          },
        ]}
        empty={
          <EmptyState title="No deliveries yet">
            A webhook is notified of tasks that are accepted after it was made. They are listed here for as
            long as they are kept.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}

/** The newest requests about a task, the newest first, and what the receiver has answered. */
function Requests({ webhook, task, close }: { webhook: string; task: string; close: () => void }) {
  const { data, error } = useQuery({
    queryKey: ['webhooks', webhook, 'tries', task],
    queryFn: () =>
      answerOf(
        api.GET('/v1/webhooks/{id}/deliveries', { params: { path: { id: webhook }, query: { task } } }),
      ),
    refetchInterval: REFRESH_MS,
  });
  const tries = data?.deliveries.flatMap((delivery) => delivery.tries ?? []).reverse();
  return (
    <Modal
      opened
      onClose={close}
      title="Requests to the receiver"
      size="xl"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {error && <ErrorView error={error} />}
      {tries?.length === 0 && <Text>Nothing was sent yet.</Text>}
      <Stack>
        {tries?.map(({ at, duration_ms: ms, status, error: failure, request, answer }) => (
          <Stack key={at} gap="xs">
            <Text fw={600}>
              <Time at={at} />: {failure ?? `HTTP ${String(status)}`}, {ms} ms
            </Text>
            {request ? (
              <Code block tabIndex={0} aria-label="Request">
                {[
                  `${request.method}, event ${request.event}, ${request.bytes} bytes`,
                  ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
                  '',
                  request.body,
                ].join('\n')}
              </Code>
            ) : (
              <Text size="sm">The request was not kept.</Text>
            )}
            {answer !== null && answer !== '' && (
              <Code block tabIndex={0} aria-label="Answer">
                {answer}
              </Code>
            )}
          </Stack>
        ))}
      </Stack>
    </Modal>
  );
}

/** @returns such as `HTTP 500, 3 times since 12:00` */
function LastAnswer({ of: { status, error, failures, failing_since: since } }: { of: ListedDelivery }) {
  return (
    <Stack gap={0}>
      <Text size="sm">{error ?? (status === null ? '–' : `HTTP ${status}`)}</Text>
      {since !== null && (
        <Text size="xs">
          {failures} {failures === 1 ? 'failure' : 'failures'} since <Time at={since} />
        </Text>
      )}
    </Stack>
  );
}
