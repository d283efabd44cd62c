import { Group, NativeSelect, Progress, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import type { TenantSchemas } from '@baton/contract';
import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import { COMMAND_LINE } from '../../command-line';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { FormButton } from '../../components/form-button';
import { textField } from '../../components/form-fields';
import { Section } from '../../components/section';
import { SimpleTable } from '../../components/simple-table';
import { useCaller } from '../../session/caller';
import { moneyIn } from './usage-query';

type ShownCap = TenantSchemas['SpendingCap'];

const KINDS: readonly ShownCap['of'][] = ['tenant', 'agent', 'caller', 'token', 'schedule', 'task'];
const PERIODS: readonly ShownCap['period'][] = ['day', 'week', 'month'];
const TITLES = ['Cap', 'Period', 'Used', 'Amount', 'Share', 'At the limit', 'Set by'];
/** The bar is red from this percentage on. Webhooks get a notice at the same percentage. */
const WARNING_PERCENT = 80;

/** What the tenant, its agents, callers and tasks may spend, and how much of it is used. */
export function SpendingCaps() {
  const { can } = useCaller();
  const { data, error, refetch } = useQuery({
    queryKey: ['spending-caps'],
    queryFn: () => answerOf(api.GET('/v1/spending-caps')),
  });
  if (error) return <ErrorView error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton height="8rem" aria-label="Loading spending caps" role="status" />;
  const mayChange = can('admin');
  const rows = data.caps.map((cap) => ({
    key: cap.id,
    cells: [...cellsOf(cap, data.currency), ...(mayChange ? [<Actions key="actions" cap={cap} />] : [])],
  }));
  return (
    <Section title="Spending caps">
      {rows.length > 0 ? (
        <SimpleTable name="Spending caps" titles={mayChange ? [...TITLES, 'Actions'] : TITLES} rows={rows} />
      ) : (
        <EmptyState
          title="No spending caps yet"
          command={`${COMMAND_LINE} caps set tenant --amount 100 --period month`}
        >
          A spending cap stops calls of models before they cost more than you want.
        </EmptyState>
      )}
      {mayChange && (
        <Group>
          <SetCap currency={data.currency} />
        </Group>
      )}
    </Section>
  );
}

function cellsOf(cap: ShownCap, currency: string): React.ReactNode[] {
  const { period, used, used_by: usedBy, allowed, amount, on_limit: onLimit, set_by: setBy } = cap;
  const share = Math.min(100, (Number(used) / Number(amount)) * 100);
  const name = nameOf(cap);
  const money = moneyIn(currency);
  return [
    name,
    period,
    <Stack key="used" gap={0}>
      <Text size="sm">{money(Number(used))}</Text>
      {cap.subject === '*' && usedBy !== null && <Text size="xs">most by {usedBy}</Text>}
      {Number(allowed) > 0 && <Text size="xs">{money(Number(allowed))} more were approved</Text>}
    </Stack>,
    money(Number(amount)),
    <Progress
      key="share"
      miw="8rem"
      value={share}
      color={share >= WARNING_PERCENT ? 'red' : 'blue'}
      aria-label={`${name} per ${period} used`}
    />,
    onLimit === 'ask' ? 'ask a person' : 'fail',
    setBy,
  ];
}

const nameOf = ({ of, subject }: Pick<ShownCap, 'of' | 'subject'>): string =>
  subject === '*' ? `each ${of}` : `${of} ${subject}`.trim();

function Actions({ cap }: { cap: ShownCap }) {
  const name = `${nameOf(cap)} per ${cap.period}`;
  if (cap.set_by === 'operator') return <Text size="sm">only the operator changes it</Text>;
  return (
    <ConfirmButton
      label="Delete"
      name={name}
      question={`Delete the spending cap of ${name}?`}
      act={() => api.DELETE('/v1/spending-caps/{id}', { params: { path: { id: cap.id } } })}
    >
      Nothing stops these calls from now on, and what was counted is gone.
    </ConfirmButton>
  );
}

function SetCap({ currency }: { currency: string }) {
  return (
    <FormButton
      label="Set spending cap"
      title="Set a spending cap"
      submit={async (fields) => {
        const of = KINDS.find((kind) => kind === textField(fields, 'of')) ?? 'tenant';
        const chosen = PERIODS.find((period) => period === textField(fields, 'period')) ?? 'month';
        const body = {
          of,
          subject: textField(fields, 'subject') ?? '',
          period: of === 'task' ? ('life' as const) : chosen,
          amount: textField(fields, 'amount') ?? '',
          on_limit: textField(fields, 'on_limit') === 'ask' ? ('ask' as const) : ('fail' as const),
        };
        await answerOf(api.PUT('/v1/spending-caps', { body }));
        return undefined;
      }}
    >
      <NativeSelect name="of" label="Of" data={[...KINDS]} />
      <TextInput
        name="subject"
        label="Which one"
        description="An agent, a schedule, the key of a caller, or the id of a token or task; * for each of them. Empty for the tenant"
      />
      <NativeSelect
        name="period"
        label="Period"
        description="A task has one amount for its life"
        data={[...PERIODS]}
      />
      <TextInput
        name="amount"
        label={`Amount in ${currency}`}
        description="Such as 2.50. A cap of the same subject and period gets it"
        required
      />
      <NativeSelect
        name="on_limit"
        label="At the limit"
        data={[
          { value: 'fail', label: 'the task fails' },
          { value: 'ask', label: 'the task asks a person' },
        ]}
      />
    </FormButton>
  );
}
