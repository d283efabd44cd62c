import { Code, Text } from '@mantine/core';
import { answerOf, api } from '../../api/client';
import { EmptyState } from '../../components/empty-state';
import { PagedTable } from '../../components/paged-table';
import { ScopedPage } from '../../components/scoped';
import { ShortId } from '../../components/short-id';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { COMMAND_LINE } from '../../command-line';

/** Who changed what in the tenant, the latest first. */
export function AuditPage() {
  return (
    <ScopedPage title="Audit log" scopes={['audit:read']}>
      <PagedTable
        name="Audit log"
        read={async (cursor) => {
          const page = await answerOf(api.GET('/v1/audit', { params: { query: { cursor } } }));
          return { entries: page.records, next: page.next_cursor };
        }}
        idOf={({ id }) => id}
        columns={[
          { title: 'Time', cell: ({ at }) => <Time at={at} /> },
          {
            title: 'Who',
            cell: ({ actor: { kind, key, name } }) => <span title={key}>{name ?? (key || kind)}</span>,
          },
          { title: 'Action', cell: ({ action }) => <Code>{action}</Code> },
          {
            title: 'On',
            cell: ({ target: { kind, name } }) => (
              <>
                {kind} <ShortId id={name} />
              </>
            ),
          },
          {
            title: 'Outcome',
            cell: ({ outcome }) => <StateWord colour={outcome === 'ok' ? 'green' : 'red'} word={outcome} />,
          },
          { title: 'From', cell: ({ source }) => source ?? '–' },
          {
            title: 'Details',
            cell: ({ detail }) =>
              Object.keys(detail).length > 0 && (
                <Text size="xs" style={{ overflowWrap: 'anywhere' }}>
                  {JSON.stringify(detail)}
                </Text>
              ),
          },
        ]}
        empty={
          <EmptyState title="Nothing was changed yet" command={`${COMMAND_LINE} audit`}>
            Changes of agents, secrets, tokens, webhooks and schedules are listed here, with who made them. So
            are calls that agents make with a sign-in.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}
