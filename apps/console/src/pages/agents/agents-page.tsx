import { Alert, Anchor, Badge, Button, Code, List, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ErrorView } from '../../components/error-view';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import { agentsQuery, type LoadFailure } from './agents-api';

/** The agents that the caller sees, and those that could not be loaded. */
export function AgentsPage() {
  const { can } = useCaller();
  const { data, error, refetch } = useQuery(agentsQuery);
  const actions = can('agents:write') && (
    <Button component={Link} to="/agents/new">
      New agent
    </Button>
  );
  return (
    <Page title="Agents" actions={actions}>
      {error && <ErrorView error={error} retry={() => void refetch()} />}
      {data && data.failures.length > 0 && <LoadFailures failures={data.failures} />}
      {data && (
        <Table.ScrollContainer minWidth={600}>
          <Table aria-label="Agents" verticalSpacing="xs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Agent</Table.Th>
                <Table.Th>Name</Table.Th>
                <Table.Th>Runtime</Table.Th>
                <Table.Th>Origin</Table.Th>
                <Table.Th>Version</Table.Th>
                <Table.Th>State</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {data.agents.map(({ slug, name, description, runtime, origin, version, enabled }) => (
                <Table.Tr key={slug}>
                  <Table.Td>
                    <Anchor component={Link} to={`/agents/${slug}`} underline="always">
                      {slug}
                    </Anchor>
                  </Table.Td>
                  <Table.Td title={description}>{name}</Table.Td>
                  <Table.Td>{runtime}</Table.Td>
                  <Table.Td>{origin}</Table.Td>
                  <Table.Td>{version ?? '–'}</Table.Td>
                  <Table.Td>
                    <EnabledBadge enabled={enabled} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Page>
  );
}

/** Whether an agent takes messages. */
export const EnabledBadge = ({ enabled }: { enabled: boolean }) => (
  <Badge variant="outline" color={enabled ? 'green.9' : 'gray.7'} c="inherit">
    {enabled ? 'enabled' : 'disabled'}
  </Badge>
);

function LoadFailures({ failures }: { failures: LoadFailure[] }) {
  return (
    <Alert color="red" variant="light" title="Agents in code that could not be loaded" role="alert">
      <List size="sm">
        {failures.map(({ agent, file, line, reason }) => (
          <List.Item key={`${file} ${line} ${reason}`}>
            <b>{agent}</b>{' '}
            <Code>
              {file}
              {line !== null && `:${line}`}
            </Code>{' '}
            {reason}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
