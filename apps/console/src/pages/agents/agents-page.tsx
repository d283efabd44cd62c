import { Alert, Anchor, Button, Code, List, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ErrorView } from '../../components/error-view';
import { FailedShare } from '../../components/failed-share';
import { Page } from '../../components/page';
import { SimpleTable } from '../../components/simple-table';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { useCaller } from '../../session/caller';
import { durationText } from '../../components/duration';
import { moneyIn, type Usage, usageQuery } from '../usage/usage-query';
import type { Agent } from './agents-api';
import { agentsQuery, type LoadFailure } from '../../api/agents-query';

const USE_DAYS = 7;
const TITLES = ['Agent', 'Runtime', 'Origin', 'Version', 'State'];
const USE_TITLES = ['Tasks a day', 'Failed', '95% within', 'Cost', 'Last task'];
const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** The agents of the caller, and those that could not be loaded. */
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
        <SimpleTable
          name="Agents"
          titles={use ? [...TITLES, ...USE_TITLES] : TITLES}
          rows={data.agents.map(({ id, slug, name, description, runtime, origin, enabled, ...versions }) => ({
            key: slug,
            cells: [
              <Stack key="agent" gap={0} title={description}>
                <Anchor component={Link} to={`/agents/${slug}`} size="sm" underline="always">
                  {slug}
                </Anchor>
                <Text size="xs">{name}</Text>
              </Stack>,
              runtime,
              origin,
              versionText(versions),
              <EnabledBadge key="state" enabled={enabled} />,
              ...(use
                ? cellsOfUse(
                    use.usage.find(({ key }) => key === id),
                    use.currency,
                  )
                : []),
            ],
          }))}
        />
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
function cellsOfUse(of: Usage['usage'][number] | undefined, currency: string | null): ReactNode[] {
  const isUsed = of !== undefined && of.tasks > 0;
  return [
    NUMBER.format((of?.tasks ?? 0) / USE_DAYS),
    isUsed ? <FailedShare key="failed" of={of} /> : '–',
    of?.p95_seconds === undefined ? '–' : durationText(of.p95_seconds * 1_000),
    currency === null || !of ? '–' : moneyIn(currency)(of.cost ?? 0),
    <Time key="last" at={of?.last_ended_at ?? null} />,
  ];
}

/** Whether an agent takes messages. */
export const EnabledBadge = ({ enabled }: { enabled: boolean }) => (
  <StateWord colour={enabled ? 'green' : 'gray'} word={enabled ? 'enabled' : 'disabled'} />
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
