import { Alert, Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { TenantSchemas } from '@baton/contract';
import { STATES, type TaskState } from '../../a2a/task-states';
import { answerOf, api } from '../../api/client';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { PagedTable } from '../../components/paged-table';
import { ScopedPage } from '../../components/scoped';
import { Section } from '../../components/section';
import { SimpleTable } from '../../components/simple-table';
import { TaskLink } from '../../components/task-link';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';

type BulkOperation = TenantSchemas['BulkOperation'];
type Action = BulkOperation['action'];
type BulkPreview = TenantSchemas['BulkPreview'];

const route = getRouteApi('/app/bulk');
/** How often the operations are read again, in ms. */
const REFRESH_MS = 2_000;

/** What each action does, and to which tasks. */
const ACTIONS: Readonly<Record<Action, { label: string; will: string }>> = {
  cancel: { label: 'Cancel open tasks', will: 'They are canceled, with the tasks below them.' },
  resume: { label: 'Resume parked tasks', will: 'They continue with the present code.' },
  continue: {
    label: 'Continue failed tasks',
    will: 'A new task continues each at the point of failure. Finished work is not done again.',
  },
  'send-again': {
    label: 'Send ended tasks again',
    will: 'The first message of each is sent again, as a new task of yours.',
  },
  delete: {
    label: 'Delete ended tasks',
    will: 'They are deleted for all callers, with their logs and artifacts.',
  },
};

interface BulkFields {
  agent: string;
  state: string;
  error: string;
  since: string;
  until: string;
}

/** Operations on many tasks: which are under way, and how to begin one. */
export function BulkPage() {
  return (
    <ScopedPage title="Bulk operations" scopes={['agents:call']}>
      <Stack gap="xl">
        <Section title="Begin">
          <Begin />
        </Section>
        <Section title="Operations">
          <Operations />
        </Section>
      </Stack>
    </ScopedPage>
  );
}

function Begin() {
  const { can } = useCaller();
  const given = route.useSearch();
  const [action, setAction] = useState<Action>('continue');
  const [filter, setFilter] = useState<BulkFields>({
    agent: given.agent ?? '',
    state: given.state ?? '',
    error: given.error ?? '',
    since: '',
    until: '',
  });
  const preview = useMutation({
    mutationFn: async (): Promise<BulkPreview> => {
      const body = { action, filter: filterOf(filter), dry_run: true };
      const answer = await answerOf(api.POST('/v1/bulk-operations', { body }));
      if ('dry_run' in answer) return answer;
      throw new Error('The server has begun the operation');
    },
  });
  const change = (changed: Partial<BulkFields>): void => {
    preview.reset();
    setFilter({ ...filter, ...changed });
  };
  const actions = Object.entries(ACTIONS).filter(([name]) => name !== 'delete' || can('admin'));
  return (
    <Stack>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          preview.mutate();
        }}
      >
        <Group align="end" gap="sm">
          <NativeSelect
            label="Action"
            value={action}
            onChange={({ currentTarget }) => {
              preview.reset();
              setAction(currentTarget.value as Action);
            }}
            data={actions.map(([value, { label }]) => ({ value, label }))}
          />
          <TextInput
            label="Agent"
            w="8rem"
            placeholder="slug or id"
            value={filter.agent}
            onChange={({ currentTarget }) => change({ agent: currentTarget.value })}
          />
          <NativeSelect
            label="State"
            value={filter.state}
            onChange={({ currentTarget }) => change({ state: currentTarget.value })}
            data={[{ value: '', label: 'any' }, ...STATES]}
          />
          <TextInput
            label="Error"
            w="10rem"
            placeholder="text in its error"
            maxLength={200}
            value={filter.error}
            onChange={({ currentTarget }) => change({ error: currentTarget.value })}
          />
          <TextInput
            label="Since"
            type="datetime-local"
            value={filter.since}
            onChange={({ currentTarget }) => change({ since: currentTarget.value })}
          />
          <TextInput
            label="Before"
            type="datetime-local"
            value={filter.until}
            onChange={({ currentTarget }) => change({ until: currentTarget.value })}
          />
          <Button type="submit" variant="default" loading={preview.isPending}>
            Show the tasks
          </Button>
        </Group>
      </form>
      {preview.error && <ErrorView error={preview.error} />}
      {preview.data && <Found preview={preview.data} action={action} filter={filter} />}
    </Stack>
  );
}

/** What would be done, and the button that does it. */
function Found({ preview, action, filter }: { preview: BulkPreview; action: Action; filter: BulkFields }) {
  const { found, complete, tasks } = preview;
  if (found === 0) return <Alert color="gray">No task matches.</Alert>;
  const count = `${complete ? '' : 'more than '}${found.toLocaleString()}`;
  const { label, will } = ACTIONS[action];
  return (
    <Stack>
      <Text role="status">
        {count} {found === 1 ? 'task matches' : 'tasks match'}
        {found > tasks.length && `. The newest ${tasks.length} of them:`}
      </Text>
      <SimpleTable
        name="Tasks that match"
        titles={['Message', 'State', 'Task', 'Error']}
        rows={tasks.map((task) => ({
          key: task.task_id,
          cells: [task.first_message, task.state, <TaskLink id={task.task_id} />, task.error_message],
        }))}
      />
      <Group>
        <ConfirmButton
          size="sm"
          label={`${label}: ${count}`}
          question={`${label}?`}
          isHarmless={action !== 'cancel' && action !== 'delete'}
          dismiss="Back"
          act={async () => {
            const body = { action, filter: filterOf(filter), dry_run: false };
            await answerOf(api.POST('/v1/bulk-operations', { body }));
          }}
        >
          {will} It is for all tasks that match when it begins.
        </ConfirmButton>
      </Group>
    </Stack>
  );
}

function Operations() {
  return (
    <PagedTable
      name="Operations"
      refreshMs={REFRESH_MS}
      read={async (cursor) => {
        const page = await answerOf(api.GET('/v1/bulk-operations', { params: { query: { cursor } } }));
        return { entries: page.bulk_operations, next: page.next_cursor };
      }}
      idOf={({ id }) => id}
      columns={[
        { title: 'Action', cell: ({ action }) => ACTIONS[action].label },
        { title: 'Tasks', cell: ({ filter }) => filterText(filter) },
        { title: 'State', cell: ({ state, waits_for: why }) => (why === null ? state : `waits: ${why}`) },
        { title: 'Found', cell: ({ found }) => found.toLocaleString() },
        { title: 'Done', cell: ({ done }) => done.toLocaleString() },
        { title: 'Skipped', cell: ({ skipped }) => skipped.toLocaleString() },
        { title: 'Failed', cell: (operation) => <Failed operation={operation} /> },
        { title: 'Begun', cell: ({ created_at: at }) => <Time at={at} /> },
        {
          title: 'Actions',
          cell: ({ id, action, state }) =>
            state === 'running' && (
              <ConfirmButton
                label="End"
                name={ACTIONS[action].label}
                question="End this operation?"
                dismiss="Back"
                act={() =>
                  answerOf(api.POST('/v1/bulk-operations/{id}/cancel', { params: { path: { id } } }))
                }
              >
                No further task is changed. What is done stays done.
              </ConfirmButton>
            ),
        },
      ]}
      empty={
        <EmptyState title="No operations yet">
          Choose an action and some tasks above. Workers do it, also after you leave.
        </EmptyState>
      }
    />
  );
}

function Failed({ operation: { failed, failures } }: { operation: BulkOperation }) {
  if (failed === 0) return <>0</>;
  return (
    <details>
      <summary>{failed.toLocaleString()}</summary>
      {failures.map(({ task_id: id, reason }) => (
        <Text key={id} size="sm">
          <TaskLink id={id} /> {reason}
        </Text>
      ))}
    </details>
  );
}

const filterText = (filter: BulkOperation['filter']): string =>
  Object.entries(filter)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${String(value)}`)
    .join(', ') || 'all';

function filterOf({ agent, state, error, since, until }: BulkFields) {
  return {
    ...(agent.trim() !== '' && { agent: agent.trim() }),
    ...(state !== '' && { state: state as TaskState }),
    ...(error !== '' && { error }),
    ...(since !== '' && { since: new Date(since).toISOString() }),
    ...(until !== '' && { until: new Date(until).toISOString() }),
  };
}
