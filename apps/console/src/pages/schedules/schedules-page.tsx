import { Alert, Badge, Button, Group, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { FormButton, textOf } from '../../components/form-button';
import { PagedTable } from '../../components/paged-table';
import { Time } from '../../components/time';
import { ScopedPage } from '../../components/scoped';
import { useCaller } from '../../session/caller';

/** The schedules of the tenant. */
export function SchedulesPage() {
  const { can } = useCaller();
  const mayWrite = can('schedules:write');
  const client = useQueryClient();
  const pause = useMutation({
    mutationFn: ({ id, paused }: { id: string; paused: boolean }) =>
      api.PATCH('/v1/schedules/{id}', { params: { path: { id } }, body: { paused } }),
    onSuccess: () => client.invalidateQueries(),
  });
  const run = useMutation({
    mutationFn: ({ id }: { id: string }) =>
      answerOf(api.POST('/v1/schedules/{id}/run', { params: { path: { id } } })),
    onSuccess: () => client.invalidateQueries(),
  });
  return (
    <ScopedPage
      title="Schedules"
      scopes={['tasks:read', 'schedules:write']}
      actions={mayWrite && can('agents:call') ? <CreateSchedule /> : undefined}
    >
      {pause.error && <ErrorView error={pause.error} />}
      {run.error && <ErrorView error={run.error} />}
      {run.data && (
        <Alert role="status" variant="default" title="A task was made">
          {run.data.request_id}
        </Alert>
      )}
      <PagedTable
        name="Schedules"
        read={async (cursor) => {
          const page = await answerOf(api.GET('/v1/schedules', { params: { query: { cursor } } }));
          return { entries: page.schedules, next: page.next_cursor };
        }}
        idOf={({ id }) => id}
        columns={[
          { title: 'Name', cell: ({ name }) => name },
          { title: 'Agent', cell: ({ agent }) => agent },
          {
            title: 'When',
            cell: ({ cron, at, time_zone: zone }) => (cron === null ? <Time at={at} /> : `${cron} (${zone})`),
          },
          {
            title: 'Next',
            cell: ({ next_at: at, paused }) =>
              paused ? <Badge variant="outline">paused</Badge> : <Time at={at} />,
          },
          {
            title: 'Last time',
            cell: ({ last_outcome: last }) =>
              last && (
                <Text size="sm" component="span">
                  {last.outcome}
                  {last.reason !== null && `: ${last.reason}`}
                </Text>
              ),
          },
          {
            title: 'Actions',
            cell: ({ id, name, paused }) =>
              mayWrite && (
                <Group gap="xs" wrap="nowrap">
                  {can('agents:call') && (
                    <Button
                      size="compact-sm"
                      variant="default"
                      aria-label={`Run ${name} now`}
                      loading={run.isPending && run.variables.id === id}
                      onClick={() => run.mutate({ id })}
                    >
                      Run now
                    </Button>
                  )}
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={`${paused ? 'Resume' : 'Pause'} ${name}`}
                    onClick={() => pause.mutate({ id, paused: !paused })}
                  >
                    {paused ? 'Resume' : 'Pause'}
                  </Button>
                  <ConfirmButton
                    label="Delete"
                    name={name}
                    question={`Delete the schedule ${name}?`}
                    act={() => api.DELETE('/v1/schedules/{id}', { params: { path: { id } } })}
                  >
                    It makes no more tasks. Those that it has made stay.
                  </ConfirmButton>
                </Group>
              ),
          },
        ]}
        empty={
          <EmptyState
            title="No schedules yet"
            command={
              'npx baton schedules create nightly --agent echo --cron "0 3 * * *" --text "Make the report"'
            }
          >
            A schedule sends a message to an agent, at fixed times or once.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}

function CreateSchedule() {
  return (
    <FormButton
      label="Create schedule"
      title="Create a schedule"
      submit={async (fields) => {
        const body = {
          name: textOf(fields, 'name') ?? '',
          agent: textOf(fields, 'agent') ?? '',
          text: textOf(fields, 'text'),
          cron: textOf(fields, 'cron') ?? null,
          time_zone: textOf(fields, 'time_zone') ?? 'UTC',
        };
        await api.POST('/v1/schedules', { body });
        return undefined;
      }}
    >
      <TextInput name="name" label="Name" description="Lower-case letters, digits and hyphens" required />
      <TextInput name="agent" label="Agent" description="Its slug" required />
      <Textarea name="text" label="Message" required autosize minRows={2} />
      <TextInput
        name="cron"
        label="Times (cron)"
        description="0 8 * * 1-5: at 8 from Monday to Friday"
        required
      />
      <TextInput
        name="time_zone"
        label="Time zone"
        defaultValue={Intl.DateTimeFormat().resolvedOptions().timeZone}
      />
    </FormButton>
  );
}
