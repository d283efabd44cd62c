import { Button, Group, Skeleton, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { SyntheticEvent } from 'react';
import { answerOf, operatorApi } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { textField } from '../../components/form-fields';
import { Page } from '../../components/page';
import { Time } from '../../components/time';
import { SimpleTable } from '../../components/simple-table';
import { workersQuery } from './workers';

const route = getRouteApi('/operators/operators/task');

/** Which worker runs a task, and what became of its runs. Operators see no message and no artifact. */
export function OperatorTaskPage() {
  const { tenant, id } = route.useSearch();
  const navigate = route.useNavigate();
  const find = (event: SyntheticEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    void navigate({ search: { tenant: textField(fields, 'tenant'), id: textField(fields, 'id') } });
  };
  return (
    <Page title="Find a task">
      <form onSubmit={find} key={`${tenant} ${id}`}>
        <Group align="flex-end">
          <TextInput name="id" label="Id of the task" defaultValue={id} required miw="22rem" />
          <TextInput
            name="tenant"
            label="Tenant"
            description="Only if several tenants have a task with this id"
            defaultValue={tenant}
          />
          <Button type="submit">Find</Button>
        </Group>
      </form>
      {id !== undefined && <Found tenant={tenant} id={id} />}
    </Page>
  );
}

function Found({ tenant, id }: { tenant: string | undefined; id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['operators', 'task', tenant, id],
    queryFn: () =>
      answerOf(
        tenant === undefined
          ? operatorApi.GET('/v1/admin/tasks/{id}', { params: { path: { id } } })
          : operatorApi.GET('/v1/admin/tenants/{tenant}/tasks/{id}', { params: { path: { tenant, id } } }),
      ),
    refetchInterval: 5_000,
  });
  const { data: known } = useQuery(workersQuery);
  if (error) return <ErrorView error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton height="8rem" aria-label="Loading the task" role="status" />;
  const nameOf = (worker: string | null): string => {
    const found = known?.workers.find((each) => each.id === worker);
    return found ? `${found.host}, process ${found.pid} (${found.id})` : (worker ?? '–');
  };
  return (
    <>
      <Text>
        {data.state ?? 'unknown'} · tenant {data.tenant} · agent {data.agent_id} · {data.events} events · last
        change <Time at={data.updated_at ?? null} />
      </Text>
      <SimpleTable
        name="Runs"
        titles={['Run', 'State', 'Worker', 'Attempts', 'Crashes', 'Accepted', 'Ended']}
        rows={data.runs.map((run) => ({
          key: run.run_id,
          cells: [
            run.run_id,
            run.state,
            nameOf(run.worker_id),
            run.attempt,
            run.crashes,
            <Time key="accepted" at={run.created_at} />,
            <Time key="ended" at={run.finished_at} />,
          ],
        }))}
      />
    </>
  );
}
