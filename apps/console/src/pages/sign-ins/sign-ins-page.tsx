import { Text } from '@mantine/core';
import type { TenantSchemas } from '@baton/contract';
import { answerOf, api } from '../../api/client';
import { COMMAND_LINE } from '../../command-line';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { PagedTable } from '../../components/paged-table';
import { ScopedPage } from '../../components/scoped';
import { Time } from '../../components/time';
import { usePrincipalName } from '../../session/principal-names';
import { BeginSignIn } from './begin-sign-in';

type Connection = TenantSchemas['Connection'];

/** Who is signed in at which servers that agents call. Tokens never leave the server. */
export function SignInsPage() {
  const nameOf = usePrincipalName();
  return (
    <ScopedPage title="Sign-ins" scopes={['secrets:write']} actions={<BeginSignIn />}>
      <PagedTable
        name="Sign-ins"
        read={async (cursor) => {
          const page = await answerOf(api.GET('/v1/connections', { params: { query: { cursor } } }));
          return { entries: page.connections, next: page.next_cursor };
        }}
        idOf={({ id }) => id}
        columns={[
          { title: 'Server', cell: ({ resource }) => resource },
          {
            title: 'Signed in',
            cell: ({ caller }) =>
              caller === null ? 'The whole tenant' : <span title={caller}>{nameOf(caller)}</span>,
          },
          { title: 'At', cell: ({ issuer }) => issuer },
          { title: 'Granted', cell: ({ scope }) => scope ?? '–' },
          {
            title: 'Since',
            cell: ({ created_at: at, created_by: by }) => (
              <>
                <Time at={at} />
                <Text size="xs" title={by}>
                  by {nameOf(by)}
                </Text>
              </>
            ),
          },
          { title: 'Expires', cell: (connection) => <Expiry of={connection} /> },
          {
            title: 'Actions',
            cell: ({ id, resource, caller }) => (
              <ConfirmButton
                label="Sign out"
                name={`${caller === null ? 'the whole tenant' : nameOf(caller)} at ${resource}`}
                question={`Sign out at ${resource}?`}
                act={() => api.DELETE('/v1/connections/{id}', { params: { path: { id } } })}
              >
                {caller === null
                  ? 'Agents that need this server fail from now on, until a person signs in again. '
                  : `Tasks of ${nameOf(caller)} that need this server ask for a new sign-in from now on. `}
                The tokens are revoked and deleted.
              </ConfirmButton>
            ),
          },
        ]}
        empty={
          <EmptyState title="No sign-ins yet" command={`${COMMAND_LINE} connections sign-in <agent>`}>
            Agents use the account of a person at tool servers and remote agents that have oauth in their
            settings, after that person has signed in there.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}

/** How long a sign-in is valid. */
function Expiry({ of: { state, reason, expires_at: expiresAt, refreshable } }: { of: Connection }) {
  if (state === 'ended') return <>Ended: {reason}. Sign in again</>;
  if (refreshable) return <>Refreshed by itself</>;
  if (expiresAt === null) return <>It is not known</>;
  return <Time at={expiresAt} />;
}
