import { Alert, Anchor, Badge, Button, Code, List, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ErrorView } from '../../components/error-view';
import { FailedShare } from '../../components/failed-share';
import { Page } from '../../components/page';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { durationText } from '../../components/duration';
import { moneyIn, type Usage, usageQuery } from '../usage/usage-query';
import type { Agent } from './agents-api';
import { agentsQuery, type LoadFailure } from '../../api/agents-query';

const USE_DAYS = 7;
const USE_TITLES = ['Tasks a day', 'Failed', '95 % within', 'Cost', 'Last task'];
const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** The agents that the caller sees, and those that could not be loaded. */
export function AgentsPage() {
  const { can } = useCaller();
  const { data, error, refetch } = useQuery(agentsQuery);
  const { data: use } = useQuery({
    ...usageQuery('agent', USE_DAYS),
    enabled: can('tasks:read', 'agents:call'),
  });
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
        <Table.ScrollContainer minWidth={900} type="native" tabIndex={0} role="region" aria-label="Agents">
          <Table aria-label="Agents" verticalSpacing="xs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Agent</Table.Th>
                <Table.Th>Name</Table.Th>
                <Table.Th>Runtime</Table.Th>
                <Table.Th>Origin</Table.Th>
                <Table.Th>Version</Table.Th>
                <Table.Th>State</Table.Th>
                {use && USE_TITLES.map((title) => <Table.Th key={title}>{title}</Table.Th>)}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {data.agents.map(({ id, slug, name, description, runtime, origin, enabled, ...versions }) => (
                <Table.Tr key={slug}>
                  <Table.Td>
                    <Anchor component={Link} to={`/agents/${slug}`} underline="always">
                      {slug}
                    </Anchor>
                  </Table.Td>
                  <Table.Td title={description}>{name}</Table.Td>
                  <Table.Td>{runtime}</Table.Td>
                  <Table.Td>{origin}</Table.Td>
                  <Table.Td>{versionText(versions)}</Table.Td>
                  <Table.Td>
                    <EnabledBadge enabled={enabled} />
                  </Table.Td>
                  {use && <UseCells of={use.usage.find(({ key }) => key === id)} currency={use.currency} />}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {data && use && (
        <Text size="sm">Tasks, failures, time and cost are those of the last {USE_DAYS} days.</Text>
      )}
    </Page>
  );
}

/** The stable version, and what is to be known about `next`. */
function versionText({
  version,
  next,
  next_ended: ended,
}: Pick<Agent, 'version' | 'next' | 'next_ended'>): string {
  if (next) return `${version} · next ${next.version}: ${next.share} %`;
  if (ended) return `${version} · next ${ended.version} failed`;
  return String(version ?? '–');
}

/** How an agent was used, of the days that `USE_TITLES` are about. @param of unset: it was not used */
function UseCells({ of, currency }: { of: Usage['usage'][number] | undefined; currency: string | null }) {
  const isUsed = of !== undefined && of.tasks > 0;
  return (
    <>
      <Table.Td>{NUMBER.format((of?.tasks ?? 0) / USE_DAYS)}</Table.Td>
      <Table.Td>{isUsed ? <FailedShare of={of} /> : '–'}</Table.Td>
      <Table.Td>{of?.p95_seconds === undefined ? '–' : durationText(of.p95_seconds * 1_000)}</Table.Td>
      <Table.Td>{currency === null || !of ? '–' : moneyIn(currency)(of.cost ?? 0)}</Table.Td>
      <Table.Td>
        <Time at={of?.last_ended_at ?? null} />
      </Table.Td>
    </>
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
