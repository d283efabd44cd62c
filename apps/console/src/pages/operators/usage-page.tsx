import { Anchor, NativeSelect, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { OperatorSchemas } from '@baton/contract';
import { answerOf, operatorApi } from '../../api/client';
import { bytesText } from '../../components/bytes-text';
import { EmptyState } from '../../components/empty-state';
import { Page } from '../../components/page';
import { PagedTable } from '../../components/paged-table';
import { tokensText } from '../../components/tokens-text';
import { moneyIn } from '../usage/usage-query';
import { COMMAND_LINE } from '../../command-line';

type UsingTenant = OperatorSchemas['TenantRow'];

const NUMBER = new Intl.NumberFormat();
/** What the tenants can be sorted by. */
const SORTS = {
  runs_in_flight: 'slots',
  waiting_runs: 'waiting runs',
  stored_bytes: 'stored bytes',
  tasks: 'tasks',
  failed: 'failed tasks',
  input_tokens: 'input tokens',
  output_tokens: 'output tokens',
  cost: 'cost',
  tenant: 'name',
} as const satisfies Partial<Record<keyof UsingTenant, string>>;
const NAMES = Object.keys(SORTS) as (keyof typeof SORTS)[];

/** Which tenants take slots, bytes, tokens and money. */
export function OperatorUsagePage() {
  const [sort, setSort] = useState<keyof typeof SORTS>('runs_in_flight');
  const [currency, setCurrency] = useState<string | null>(null);
  return (
    <Page title="Usage of tenants">
      <NativeSelect
        label="Sort by"
        maw="14rem"
        value={sort}
        data={NAMES.map((value) => ({ value, label: SORTS[value] }))}
        onChange={({ currentTarget: { value } }) =>
          setSort(NAMES.find((name) => name === value) ?? 'runs_in_flight')
        }
      />
      <PagedTable
        key={sort}
        name="Usage of the last 24 hours"
        read={async (cursor) => {
          const page = await answerOf(
            operatorApi.GET('/v1/admin/usage', { params: { query: { sort, cursor } } }),
          );
          setCurrency(page.currency);
          return { entries: page.tenants, next: page.next_cursor };
        }}
        idOf={({ tenant }) => tenant}
        columns={[
          {
            title: 'Tenant',
            cell: ({ tenant }) => (
              <Anchor component={Link} to={`/operators/tenants/${tenant}`} size="sm" underline="always">
                {tenant}
              </Anchor>
            ),
          },
          { title: 'Slots now', cell: (row) => NUMBER.format(row.runs_in_flight) },
          { title: 'Waiting runs now', cell: (row) => NUMBER.format(row.waiting_runs) },
          {
            title: 'Stored',
            cell: (row) => (row.stored_bytes === null ? 'not counted yet' : bytesText(row.stored_bytes)),
          },
          { title: 'Tasks (24 h)', cell: (row) => NUMBER.format(row.tasks) },
          { title: 'Failed (24 h)', cell: (row) => NUMBER.format(row.failed) },
          {
            title: 'Tokens in → out (24 h)',
            cell: (row) => tokensText(row.input_tokens, row.output_tokens),
          },
          {
            title: 'Cost (24 h)',
            cell: ({ cost }) =>
              cost === null ? '–' : currency === null ? NUMBER.format(cost) : moneyIn(currency)(cost),
          },
        ]}
        empty={
          <EmptyState title="No tenants yet" command={`${COMMAND_LINE} tenants create acme`}>
            A tenant has its own tasks, agents, tokens and limits.
          </EmptyState>
        }
      />
      <Text size="sm">
        Tasks are counted ten minutes after their end. Calls of models are counted when they end.
      </Text>
    </Page>
  );
}
