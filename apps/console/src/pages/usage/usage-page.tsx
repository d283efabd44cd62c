import { Alert, Button, Group, NativeSelect, Progress, Skeleton, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answerOf, api, fetchApi } from '../../api/client';
import { limitText } from '../../components/bytes-text';
import { DataTable } from '../../components/data-table';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { ScopedPage } from '../../components/scoped';
import { useCaller } from '../../session/caller';
import { usePrincipalName } from '../../session/principal-names';
import { useAgentNames } from '../../components/agent-names';
import { Section } from '../../components/section';
import { SpendingCaps } from './spending-caps';
import { moneyIn, sinceOf, type Usage, usageQuery } from './usage-query';
import { type Key, KEYS, PERIODS, readUsageView, type UsageView } from './usage-view';
import { COMMAND_LINE } from '../../command-line';

const route = getRouteApi('/app/usage');
const NUMBER = new Intl.NumberFormat();
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });

/** What tasks have used and cost, and how much of the limits of the tenant is used. */
export function UsagePage() {
  const { can } = useCaller();
  const { by = 'day', days = 7 } = route.useSearch();
  const navigate = route.useNavigate();
  const choose = (chosen: UsageView) =>
    void navigate({ search: (before) => readUsageView({ ...before, ...chosen }), replace: true });
  const usage = useQuery(usageQuery(by, days));
  return (
    <ScopedPage title="Usage and limits" scopes={['tasks:read', 'agents:call']}>
      <Group align="flex-end">
        <NativeSelect
          label="By"
          value={by}
          onChange={({ currentTarget }) => choose({ by: currentTarget.value as Key })}
          data={Object.entries(KEYS).map(([value, label]) => ({ value, label }))}
        />
        <NativeSelect
          label="Period"
          value={String(days)}
          onChange={({ currentTarget }) => choose({ days: Number(currentTarget.value) })}
          data={[...PERIODS].map(([value, label]) => ({ value: String(value), label }))}
        />
        <Download by={by} days={days} />
      </Group>
      {usage.error && <ErrorView error={usage.error} retry={() => void usage.refetch()} />}
      {usage.isPending && <Skeleton height="8rem" aria-label="Loading usage" role="status" />}
      {usage.data && <UsageTable usage={usage.data} />}
      {can('tasks:read') && <SpendingCaps />}
      {can('tasks:read') && <Limits />}
    </ScopedPage>
  );
}

/** Saves the same as CSV. */
function Download({ by, days }: { by: Key; days: number }) {
  const save = useMutation({
    mutationFn: async () => {
      const query = new URLSearchParams({ by, since: sinceOf(days), format: 'csv' });
      const answer = await fetchApi(`/v1/usage?${query.toString()}`);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(await answer.blob());
      link.download = `usage-by-${by}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    },
  });
  return (
    <>
      <Button variant="default" loading={save.isPending} onClick={() => save.mutate()}>
        Download CSV
      </Button>
      {save.error && <ErrorView error={save.error} />}
    </>
  );
}

function UsageTable({ usage }: { usage: Usage }) {
  const { by, currency, usage: rows, unpriced_models: unpriced, complete } = usage;
  const names = useAgentNames();
  const principalName = usePrincipalName();
  if (rows.length === 0) {
    return (
      <EmptyState title="No usage in this time" command={`${COMMAND_LINE} send echo "Hello"`}>
        Choose a longer period, or send a message to an agent.
      </EmptyState>
    );
  }
  // An agent that is deleted, or that the caller may not read, has its id only. So has a token.
  const nameOf = (key: string): string => {
    if (by === 'agent') return names.get(key) ?? key;
    if (by === 'token' && key !== '') return principalName(`token:${key}`).replace(/^token:/, '');
    return by === 'owner' ? principalName(key) : key;
  };
  const money = currency === null ? undefined : moneyIn(currency);
  const titles = [KEYS[by], 'Tasks', 'Failed', 'Time (s)', 'Model calls', 'Input tokens', 'Output tokens'];
  return (
    <Stack gap="xs">
      <DataTable
        name="Usage"
        titles={money ? [...titles, 'Cost'] : titles}
        rows={rows.map((row) => ({
          key: row.key,
          cells: [
            by === 'day' ? DAY.format(new Date(row.key)) : nameOf(row.key) || 'none',
            NUMBER.format(row.tasks),
            NUMBER.format(row.failed),
            NUMBER.format(Math.round(row.seconds)),
            NUMBER.format(row.calls),
            NUMBER.format(row.input_tokens),
            NUMBER.format(row.output_tokens),
            ...(money ? [money(row.cost ?? 0)] : []),
          ],
        }))}
      />
      {!money && <Text size="sm">The operator has set no prices (MODEL_PRICES), so there are no costs.</Text>}
      {money && unpriced.length > 0 && <Text size="sm">{unpricedText(unpriced)}</Text>}
      {!complete && (
        <Alert variant="default" title="There is more">
          Some tasks are not counted. Choose a shorter period, or try again later.
        </Alert>
      )}
    </Stack>
  );
}

/** Which tokens are in no cost. Agents in code may report tokens without the name of a model. */
function unpricedText(models: readonly string[]): string {
  const named = models.filter((model) => model !== '');
  const texts = [
    ...(named.length > 0 ? [`These models have no price, so they are in no cost: ${named.join(', ')}.`] : []),
    ...(named.length < models.length ? ['Tokens that agents report without a model are in no cost.'] : []),
  ];
  return texts.join(' ');
}

/** The limits with a count, as bars, then those of single requests and tasks. */
function Limits() {
  const { data, error, refetch } = useQuery({
    queryKey: ['limits'],
    queryFn: () => answerOf(api.GET('/v1/limits')),
  });
  if (error) return <ErrorView error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton height="8rem" aria-label="Loading limits" role="status" />;
  return (
    <Section title="Limits">
      <DataTable
        name="Limits"
        titles={['Limit', 'Used', 'At most', 'Share']}
        rows={data.limits.map(({ name, counts, max, used }) => {
          const shown = (value: number): string => limitText(name, value);
          const share = max === null || used === null ? undefined : Math.min(100, (used / max) * 100);
          return {
            key: name,
            cells: [
              <>
                <Text size="sm" fw={500}>
                  {counts}
                </Text>
                <Text size="xs">{name}</Text>
              </>,
              used === null ? '–' : shown(used),
              max === null ? 'no limit' : shown(max),
              share === undefined ? (
                '–'
              ) : (
                <Progress
                  key="share"
                  value={share}
                  miw="8rem"
                  color={share >= 90 ? 'red' : 'blue'}
                  aria-label={`${name} used`}
                />
              ),
            ],
          };
        })}
      />
      <Text size="sm" mt="xs">
        Only the operator changes limits.
      </Text>
    </Section>
  );
}
