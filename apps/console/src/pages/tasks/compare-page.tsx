import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { answerOf, api } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { TaskComparison, useComparedTask } from '../../comparison/task-comparison';
import type { Task } from './task-words';
import { UUID } from '../../components/uuid';

const route = getRouteApi('/app/tasks/$id/compare');
/** Other tasks of the agent that can be chosen: the newest. */
const MAX_CHOICES = 50;

/** Two tasks beside each other, and where they differ. */
export function ComparePage() {
  const { id } = route.useParams();
  const { with: other } = route.useSearch();
  const one = useComparedTask(id);
  const two = useComparedTask(other);
  const error = one.error ?? two.error;
  return (
    <Page
      title="Compare two tasks"
      actions={
        <Button variant="default" component={Link} to={`/tasks/${id}`}>
          Back to the task
        </Button>
      }
    >
      {one.data && <Choice task={one.data} />}
      {error && <ErrorView error={error} />}
      {one.data && two.data && <TaskComparison one={one.data} two={two.data} />}
      {other === undefined && (
        <EmptyState title="Choose the other task">
          Choose another task of the same agent, or paste the id of any task that you see.
        </EmptyState>
      )}
    </Page>
  );
}

/** Chooses the other task. */
function Choice({ task: { task_id: id, agent_id: agent } }: { task: Task }) {
  const { with: other } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useQuery({
    queryKey: ['tasks-of-agent', agent],
    queryFn: () => answerOf(api.GET('/v1/tasks', { params: { query: { agent, limit: MAX_CHOICES } } })),
  });
  const choose = (chosen: string) => void navigate({ search: chosen === '' ? {} : { with: chosen } });
  const others = (data?.tasks ?? []).filter(({ task_id: each }) => each !== id);
  return (
    <Group align="end">
      <NativeSelect
        label="Other task of the agent"
        value={other ?? ''}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
        data={[
          { value: '', label: 'choose' },
          // A pasted id may be older, or of another agent.
          ...(other !== undefined && !others.some(({ task_id: each }) => each === other) ? [other] : []),
          ...others.map(({ task_id: each, state, updated_at: at }) => ({
            value: each,
            label: `${state ?? 'unknown'} ${at === undefined ? '' : new Date(at).toLocaleString()} ${each}`,
          })),
        ]}
      />
      <TextInput
        label="Or its id"
        placeholder="id"
        onChange={({ currentTarget }) =>
          UUID.test(currentTarget.value.trim()) && choose(currentTarget.value.trim())
        }
      />
    </Group>
  );
}
