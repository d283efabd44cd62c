import { Alert, Button, Skeleton, Stack, Text, TextInput, Textarea } from '@mantine/core';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import type { TenantSchemas } from '@baton/contract';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { FormButton } from '../../components/form-button';
import { textField } from '../../components/form-fields';
import { PagedTable } from '../../components/paged-table';
import { RowActions } from '../../components/row-actions';
import { TaskLink } from '../../components/task-link';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { StateBadge } from '../tasks/task-words';
import { RecentTasks } from './recent-tasks';
import { ScopedPage } from '../../components/scoped';
import { useCaller } from '../../session/caller';
import { COMMAND_LINE } from '../../command-line';

type Schedule = TenantSchemas['Schedule'];

/** What came of the last time of a schedule. A task that was made may still fail: it has a state of its own. */
const OUTCOMES = {
  started: 'made a task',
  skipped: 'skipped',
  missed: 'missed',
  refused: 'refused',
} as const;
/** How often the list is read again: its tasks change, in ms. */
const REFRESH_MS = 5_000;

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
          <TaskLink id={run.data.task_id} />
        </Alert>
      )}
      <PagedTable
        name="Schedules"
        refreshMs={REFRESH_MS}
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
            cell: ({ next_at: at, paused, paused_reason: reason }) =>
              paused ? (
                <>
                  <StateWord colour="orange" word={reason === null ? 'paused' : 'paused by Baton'} />
                  {reason !== null && <Text size="sm">{reason}</Text>}
                </>
              ) : (
                <Time at={at} />
              ),
          },
          {
            title: 'Last time',
            cell: ({ last_outcome: last }) =>
              last && (
                <Stack gap={0}>
                  <Text size="sm" component="span">
                    {OUTCOMES[last.outcome]}
                    {last.reason !== null && `: ${last.reason}`}
                  </Text>
                  <Text size="xs" component="span">
                    <Time at={last.at} />
                  </Text>
                </Stack>
              ),
          },
          {
            title: 'Last task',
            cell: ({ last_task: task }) =>
              task &&
              (task.state === null ? (
                'deleted'
              ) : (
                <TaskLink id={task.task_id}>
                  <StateBadge state={task.state} />
                </TaskLink>
              )),
          },
          {
            title: 'Last ten tasks',
            cell: ({ recent_tasks: tasks }) => (tasks.length === 0 ? null : <RecentTasks tasks={tasks} />),
          },
          {
            title: 'Actions',
            cell: (schedule) => {
              const { id, name, paused } = schedule;
              return (
                mayWrite && (
                  <RowActions>
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
                    <EditSchedule id={id} name={name} />
                    <ConfirmButton
                      label="Delete"
                      name={name}
                      question={`Delete the schedule ${name}?`}
                      act={() => api.DELETE('/v1/schedules/{id}', { params: { path: { id } } })}
                    >
                      It makes no more tasks. Those that it has made stay.
                    </ConfirmButton>
                  </RowActions>
                )
              );
            },
          },
        ]}
        empty={
          <EmptyState
            title="No schedules yet"
            command={`${COMMAND_LINE} schedules create nightly --agent echo --cron "0 3 * * *" --text "Make the report"`}
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
          name: textField(fields, 'name') ?? '',
          agent: textField(fields, 'agent') ?? '',
          text: textField(fields, 'text'),
          cron: textField(fields, 'cron') ?? null,
          time_zone: textField(fields, 'time_zone') ?? 'UTC',
        };
        await api.POST('/v1/schedules', { body });
        return undefined;
      }}
    >
      <Fields />
    </FormButton>
  );
}

/** Changes a schedule. The parts of its message besides text stay, unless the user writes another text. */
function EditSchedule({ id, name }: Pick<Schedule, 'id' | 'name'>) {
  const client = useQueryClient();
  return (
    <FormButton
      label="Edit"
      name={name}
      title={`Change the schedule ${name}`}
      submit={async (fields) => {
        const { cron, ...before } = await client.fetchQuery(scheduleQuery(id));
        const text = textField(fields, 'text');
        const body = {
          name: textField(fields, 'name') ?? '',
          agent: textField(fields, 'agent') ?? '',
          ...(text !== undefined && text !== messageText(before).trim() && { text }),
          ...(cron !== null && { cron: textField(fields, 'cron') ?? null }),
          time_zone: textField(fields, 'time_zone') ?? 'UTC',
        };
        await answerOf(api.PATCH('/v1/schedules/{id}', { params: { path: { id } }, body }));
        return undefined;
      }}
    >
      <FieldsOf id={id} />
    </FormButton>
  );
}

/** Lists leave out the message. */
const scheduleQuery = (id: string) =>
  queryOptions({
    queryKey: ['schedules', id],
    queryFn: () => answerOf(api.GET('/v1/schedules/{id}', { params: { path: { id } } })),
  });

function FieldsOf({ id }: { id: string }) {
  const { data, error } = useQuery(scheduleQuery(id));
  if (error) return <ErrorView error={error} />;
  return data ? <Fields schedule={data} /> : <Skeleton height="16rem" aria-label="Loading" role="status" />;
}

/** The text of its message. */
function messageText({ message }: Pick<Schedule, 'message'>): string {
  const { parts = [] } = message as { parts?: { text?: string }[] };
  return parts.flatMap(({ text }) => text ?? []).join('\n');
}

/** The fields of the form. @param schedule their present values */
function Fields({ schedule }: { schedule?: Schedule }) {
  return (
    <>
      <TextInput
        name="name"
        label="Name"
        description="Lower-case letters, digits and hyphens"
        required
        defaultValue={schedule?.name}
      />
      <TextInput name="agent" label="Agent" description="Its slug" required defaultValue={schedule?.agent} />
      <Textarea
        name="text"
        label="Message"
        required
        autosize
        minRows={2}
        defaultValue={schedule && messageText(schedule)}
      />
      {schedule?.cron !== null && (
        <TextInput
          name="cron"
          label="Times (cron)"
          description="0 8 * * 1-5: at 8 from Monday to Friday"
          required
          defaultValue={schedule?.cron}
        />
      )}
      <TextInput
        name="time_zone"
        label="Time zone"
        defaultValue={schedule?.time_zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone}
      />
    </>
  );
}
