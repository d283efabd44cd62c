import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';

/** The tasks of the tenant that the caller sees, the newest first. */
export function TasksPage() {
  const { data, error, refetch } = useQuery({
    queryKey: ['tasks'],
    queryFn: () => answerOf(api.GET('/v1/requests')),
  });
  return (
    <Page title="Tasks">
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {data?.requests.length === 0 && (
        <EmptyState title="No tasks yet" command={'npx baton send echo "Hello"'}>
          A task begins when somebody sends a message to an agent.
        </EmptyState>
      )}
      {data && data.requests.length > 0 && (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Task</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Updated</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.requests.map((task) => (
              <Table.Tr key={task.request_id}>
                <Table.Td>{task.request_id}</Table.Td>
                <Table.Td>{task.state}</Table.Td>
                <Table.Td>{task.updated_at}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Page>
  );
}
