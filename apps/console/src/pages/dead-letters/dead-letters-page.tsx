import { Stack } from '@mantine/core';
import { answerOf, api } from '../../api/client';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { PagedTable } from '../../components/paged-table';
import { Time } from '../../components/time';
import { ScopedPage } from '../../components/scoped';
import { Section } from '../../components/section';
import { TaskLink } from '../../components/task-link';
import { useCaller } from '../../session/caller';

/** Dead letters: runs that used up their attempts, and push notifications that no receiver has accepted. */
export function DeadLettersPage() {
  return (
    <ScopedPage title="Dead letters" scopes={['tasks:read', 'agents:call']}>
      <Stack gap="xl">
        <Section title="Runs">
          <DeadRuns />
        </Section>
        <Section title="Push notifications">
          <DeadPushes />
        </Section>
      </Stack>
    </ScopedPage>
  );
}

function DeadRuns() {
  const { can } = useCaller();
  return (
    <PagedTable
      name="Dead runs"
      read={async (cursor) => {
        const page = await answerOf(api.GET('/v1/dead-letters', { params: { query: { cursor } } }));
        return { entries: page.dead_letters, next: page.next_cursor };
      }}
      idOf={({ run_id: id }) => id}
      columns={[
        { title: 'Task', cell: ({ task_id: id }) => <TaskLink id={id} /> },
        { title: 'Reason', cell: ({ reason }) => reason },
        { title: 'Attempts', cell: ({ attempts }) => attempts },
        { title: 'Given up', cell: ({ died_at: at }) => <Time at={at} /> },
        { title: 'Sent again', cell: ({ redelivered_at: at }) => <Time at={at} /> },
        {
          title: 'Actions',
          cell: ({ run_id: runId, task_id: id, redelivered_at: at }) =>
            can('agents:call') && (
              <ConfirmButton
                isHarmless
                label="Send again"
                name={id}
                question="Send the message of this run again?"
                act={() =>
                  api.POST('/v1/dead-letters/{runId}/redeliver', {
                    params: { path: { runId }, query: { again: at !== null } },
                  })
                }
              >
                The agent gets the message again, as a new task. What it has done before is not undone.
              </ConfirmButton>
            ),
        },
      ]}
      empty={
        <EmptyState title="No dead runs">
          A run comes here when its worker has died on every attempt. You can then send its message again.
        </EmptyState>
      }
    />
  );
}

function DeadPushes() {
  const { can } = useCaller();
  return (
    <PagedTable
      name="Dead push notifications"
      read={async (cursor) => {
        const page = await answerOf(api.GET('/v1/dead-pushes', { params: { query: { cursor } } }));
        return { entries: page.dead_pushes, next: page.next_cursor };
      }}
      idOf={({ task_id: id, config_id: config }) => `${id} ${config}`}
      columns={[
        { title: 'Receiver', cell: ({ receiver }) => receiver },
        { title: 'Task', cell: ({ task_id: id }) => <TaskLink id={id} /> },
        {
          title: 'Last answer',
          cell: ({ status, error }) => error ?? (status === null ? 'none' : `HTTP ${status}`),
        },
        { title: 'Events that wait', cell: ({ waiting }) => waiting },
        { title: 'Failing since', cell: ({ failing_since: at }) => <Time at={at} /> },
        {
          title: 'Actions',
          cell: ({ task_id: id, config_id: config, receiver }) =>
            can('agents:call') && (
              <ConfirmButton
                isHarmless
                label="Deliver again"
                name={receiver}
                question="Deliver again?"
                act={() =>
                  api.POST('/v1/dead-pushes/{id}/redeliver', { params: { path: { id }, query: { config } } })
                }
              >
                {receiver} gets the events that it has not taken, in order.
              </ConfirmButton>
            ),
        },
      ]}
      empty={
        <EmptyState title="No dead push notifications">
          A receiver comes here when it has refused its events for too long.
        </EmptyState>
      }
    />
  );
}
