import { Checkbox, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { answerOf, api } from '../../api/client';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { FormButton } from '../../components/form-button';
import { textField, wordsField } from '../../components/form-fields';
import { PagedTable } from '../../components/paged-table';
import { RowActions } from '../../components/row-actions';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { ScopedPage } from '../../components/scoped';
import { type CallerScope, useCaller } from '../../session/caller';

const COLOURS = { active: 'green', expired: 'gray', revoked: 'red' } as const;

/** The rights of each scope, in the order of the form. */
const SCOPES: readonly [CallerScope, string][] = [
  ['agents:call', 'send messages, see and cancel its own tasks'],
  ['tasks:read', 'see the tasks of all callers'],
  ['tasks:write', 'continue and cancel the tasks of all callers'],
  ['tasks:approve', 'approve calls of tools'],
  ['agents:read', 'see agents'],
  ['agents:write', 'create and change agents'],
  ['secrets:write', 'set secrets'],
  ['schedules:write', 'create and change schedules'],
  ['records:read', 'see what models were sent'],
  ['audit:read', 'read the audit log'],
  ['admin', 'everything'],
];

/** The tokens of the tenant, for its administrators. A secret is shown once, when it is made. */
export function TokensPage() {
  return (
    <ScopedPage title="Tokens" scopes={['admin']} actions={<CreateToken />}>
      <PagedTable
        name="Tokens"
        read={async (cursor) => {
          const page = await answerOf(api.GET('/v1/tokens', { params: { query: { cursor } } }));
          return { entries: page.tokens, next: page.next_cursor };
        }}
        idOf={({ id }) => id}
        columns={[
          { title: 'Name', cell: ({ name }) => name },
          { title: 'Begins with', cell: ({ prefix }) => `${prefix}…` },
          { title: 'State', cell: ({ state }) => <StateWord colour={COLOURS[state]} word={state} /> },
          { title: 'May do', cell: ({ scopes }) => scopes.join(', ') },
          { title: 'Agents', cell: ({ agents }) => agents?.join(', ') ?? 'all' },
          { title: 'Rate', cell: ({ requests_per_second: rate }) => (rate === null ? '–' : `${rate}/s`) },
          { title: 'Last used', cell: ({ last_used_at: at }) => <Time at={at} /> },
          { title: 'Expires', cell: ({ expires_at: at }) => <Time at={at} /> },
          {
            title: 'Actions',
            cell: ({ id, name, state }) =>
              state === 'active' && (
                <RowActions>
                  <FormButton
                    label="Rotate"
                    name={name}
                    title={`Give the token ${name} a new secret`}
                    submit={async (fields) => {
                      const hours = Number(textField(fields, 'hours') ?? '0');
                      const body = { overlap_seconds: Math.round(hours * 3_600) };
                      const path = { id };
                      return (await answerOf(api.POST('/v1/tokens/{id}/rotate', { params: { path }, body })))
                        .secret;
                    }}
                  >
                    <TextInput
                      name="hours"
                      label="The former secret stays valid for (hours)"
                      description="0: it is refused immediately. At most 720"
                      type="number"
                      min={0}
                      max={720}
                      step="any"
                      defaultValue={1}
                      required
                    />
                  </FormButton>
                  <ConfirmButton
                    label="Revoke"
                    name={name}
                    question={`Revoke the token ${name}?`}
                    act={() => api.DELETE('/v1/tokens/{id}', { params: { path: { id } } })}
                  >
                    Programs that use it are refused immediately. Its tasks and schedules continue.
                  </ConfirmButton>
                </RowActions>
              ),
          },
        ]}
        empty={
          <EmptyState title="No tokens yet">
            Programs and people call with a token. Give each its own, with the scopes that it needs.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}

const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

function CreateToken() {
  const { can } = useCaller();
  return (
    <FormButton
      label="Create token"
      title="Create a token"
      submit={async (fields) => {
        const body = {
          name: textField(fields, 'name') ?? '',
          scopes: fields.getAll('scopes') as CallerScope[],
          ...(wordsField(fields, 'agents') && { agents: wordsField(fields, 'agents') }),
          ...(textField(fields, 'rate') !== undefined && {
            requests_per_second: Number(textField(fields, 'rate')),
          }),
          ...(textField(fields, 'days') !== undefined && {
            expires_at: inDays(Number(textField(fields, 'days'))),
          }),
        };
        return (await answerOf(api.POST('/v1/tokens', { body }))).secret;
      }}
    >
      <TextInput name="name" label="Name" description="What it is for" required />
      <Stack gap="xs" role="group" aria-labelledby="token-scopes">
        <Text size="sm" fw={500} id="token-scopes">
          It may
        </Text>
        {SCOPES.filter(([scope]) => can(scope)).map(([scope, label]) => (
          <Checkbox
            key={scope}
            name="scopes"
            value={scope}
            label={`${scope}: ${label}`}
            defaultChecked={scope === 'agents:call'}
          />
        ))}
      </Stack>
      <TextInput
        name="agents"
        label="Only these agents"
        description="Slugs with commas between them. Empty: all"
      />
      <NativeSelect
        name="days"
        label="Expires"
        defaultValue="90"
        data={[
          { value: '1', label: 'in a day' },
          { value: '30', label: 'in 30 days' },
          { value: '90', label: 'in 90 days' },
          { value: '365', label: 'in a year' },
          { value: '', label: 'never' },
        ]}
      />
      <TextInput
        name="rate"
        label="Requests per second"
        description="Empty: the limit of the tenant alone"
        type="number"
        min={1}
        step={1}
      />
    </FormButton>
  );
}
