import { PasswordInput, Textarea, TextInput } from '@mantine/core';
import { answerOf, api } from '../../api/client';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { FormButton } from '../../components/form-button';
import { textField, wordsField } from '../../components/form-fields';
import { PagedTable } from '../../components/paged-table';
import { RowActions } from '../../components/row-actions';
import { Time } from '../../components/time';
import { ScopedPage } from '../../components/scoped';
import { COMMAND_LINE } from '../../command-line';

/** The names of the secrets of the tenant. Their values never leave the server. */
export function SecretsPage() {
  return (
    <ScopedPage title="Secrets" scopes={['secrets:write']} actions={<SetSecret />}>
      <PagedTable
        name="Secrets"
        read={async (cursor) => {
          const page = await answerOf(api.GET('/v1/secrets', { params: { query: { cursor } } }));
          return { entries: page.secrets, next: page.next_cursor };
        }}
        idOf={({ name }) => name}
        columns={[
          { title: 'Name', cell: ({ name }) => name },
          {
            title: 'May be sent to',
            cell: ({ origins }) => (origins === null ? 'anywhere' : origins.join(', ') || 'nowhere'),
          },
          { title: 'Changed', cell: ({ updated_at: at }) => <Time at={at} /> },
          {
            title: 'Actions',
            cell: ({ name }) => (
              <RowActions>
                <ConfirmButton
                  label="Delete"
                  name={name}
                  question={`Delete the secret ${name}?`}
                  act={() => api.DELETE('/v1/secrets/{name}', { params: { path: { name } } })}
                >
                  Agents that use it fail from now on. Its value cannot be restored.
                </ConfirmButton>
              </RowActions>
            ),
          },
        ]}
        empty={
          <EmptyState title="No secrets yet" command={`${COMMAND_LINE} secrets set openai --file openai.key`}>
            A secret is a key that agents send to a model or a tool. Its value is stored encrypted and never
            shown.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}

function SetSecret() {
  return (
    <FormButton
      label="Set secret"
      title="Set a secret"
      submit={async (fields) => {
        const name = textField(fields, 'name') ?? '';
        const value = fields.get('value');
        const body = {
          value: typeof value === 'string' ? value : '',
          origins: wordsField(fields, 'origins'),
        };
        await api.PUT('/v1/secrets/{name}', { params: { path: { name } }, body });
        return undefined;
      }}
    >
      <TextInput name="name" label="Name" description="A secret of this name gets the new value" required />
      <PasswordInput name="value" label="Value" required autoComplete="off" />
      <Textarea
        name="origins"
        label="Origins that may receive it"
        description="Such as https://api.openai.com, one per line. Empty: as before, or those of the provider of this name"
        autosize
      />
    </FormButton>
  );
}
