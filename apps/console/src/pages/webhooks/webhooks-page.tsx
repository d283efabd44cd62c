import { Alert, Anchor, Button, Checkbox, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, api } from '../../api/client';
import type { TenantSchemas } from '@baton/contract';
import { ConfirmButton } from '../../components/confirm-button';
import { EmptyState } from '../../components/empty-state';
import { ErrorView } from '../../components/error-view';
import { FormButton } from '../../components/form-button';
import { textField, wordsField } from '../../components/form-fields';
import { PagedTable } from '../../components/paged-table';
import { RowActions } from '../../components/row-actions';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { ScopedPage } from '../../components/scoped';
import { COMMAND_LINE } from '../../command-line';
import { healthText } from './health';

const STATES = ['input-required', 'auth-required', 'completed', 'failed', 'canceled', 'rejected'] as const;
type WebhookState = (typeof STATES)[number];
type Webhook = TenantSchemas['Webhook'];
/** How often the list is read again, in ms. */
const REFRESH_MS = 5_000;

/** The webhooks of the tenant, for its administrators. */
export function WebhooksPage() {
  const test = useMutation({
    mutationFn: async ({ id, url }: { id: string; url: string }) => ({
      url,
      ...(await answerOf(api.POST('/v1/webhooks/{id}/test', { params: { path: { id } } }))),
    }),
  });
  return (
    <ScopedPage title="Webhooks" scopes={['admin']} actions={<CreateWebhook />}>
      {test.error && <ErrorView error={test.error} title="The test could not be sent" />}
      {test.data && (
        <Alert
          role="status"
          variant="default"
          title={
            test.data.delivered ? 'The receiver has taken the test' : 'The receiver has not taken the test'
          }
        >
          {test.data.url}: {test.data.error ?? `HTTP ${String(test.data.status)}`}
        </Alert>
      )}
      <PagedTable
        name="Webhooks"
        refreshMs={REFRESH_MS}
        read={async (cursor) => {
          const page = await answerOf(api.GET('/v1/webhooks', { params: { query: { cursor } } }));
          return { entries: page.webhooks, next: page.next_cursor };
        }}
        idOf={({ id }) => id}
        columns={[
          { title: 'URL', cell: ({ url }) => url },
          { title: 'Agents', cell: ({ agents }) => agents?.join(', ') ?? 'all' },
          { title: 'States', cell: ({ states }) => states?.join(', ') ?? 'all' },
          {
            title: 'State',
            cell: ({ enabled }) => (
              <StateWord colour={enabled ? 'green' : 'gray'} word={enabled ? 'enabled' : 'disabled'} />
            ),
          },
          {
            title: 'Health',
            cell: ({ id, url, health }) => (
              <Anchor
                component={Link}
                to={`/webhooks/${id}`}
                underline="always"
                size="sm"
                display="inline-block"
                miw={{ base: 0, sm: '14rem' }}
                aria-label={`Deliveries of ${url}: ${healthText(health)}`}
              >
                {healthText(health)}
              </Anchor>
            ),
          },
          { title: 'Changed', cell: ({ updated_at: at }) => <Time at={at} /> },
          {
            title: 'Actions',
            cell: (webhook) => {
              const { id, url } = webhook;
              return (
                <RowActions>
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={`Test ${url}`}
                    loading={test.isPending && test.variables.id === id}
                    onClick={() => test.mutate({ id, url })}
                  >
                    Test
                  </Button>
                  <EditWebhook webhook={webhook} />
                  <ConfirmButton
                    isHarmless
                    label="Rotate secret"
                    name={url}
                    question="Give this webhook a new secret?"
                    act={async () => (await answerOf(rotate(id))).secret}
                  >
                    The former secret also signs for 24 hours, so that you can change the receiver.
                  </ConfirmButton>
                  <ConfirmButton
                    label="Delete"
                    name={url}
                    question="Delete this webhook?"
                    act={() => api.DELETE('/v1/webhooks/{id}', { params: { path: { id } } })}
                  >
                    {url} gets nothing more, not even pending deliveries.
                  </ConfirmButton>
                </RowActions>
              );
            },
          },
        ]}
        empty={
          <EmptyState
            title="No webhooks yet"
            command={`${COMMAND_LINE} webhooks create https://example.com/baton --state completed failed`}
          >
            A webhook tells a URL of yours when tasks change their state. Its deliveries are signed.
          </EmptyState>
        }
      />
    </ScopedPage>
  );
}

const rotate = (id: string) =>
  api.POST('/v1/webhooks/{id}/rotate', { params: { path: { id } }, body: { overlap_seconds: 86_400 } });

function CreateWebhook() {
  return (
    <FormButton
      label="Create webhook"
      title="Create a webhook"
      submit={async (fields) => {
        const states = fields.getAll('states') as WebhookState[];
        const body = {
          url: textField(fields, 'url') ?? '',
          ...(wordsField(fields, 'agents') && { agents: wordsField(fields, 'agents') }),
          ...(states.length > 0 && { states }),
        };
        return (await answerOf(api.POST('/v1/webhooks', { body }))).secret;
      }}
    >
      <Fields />
    </FormButton>
  );
}

function EditWebhook({ webhook }: { webhook: Webhook }) {
  const { id, url } = webhook;
  return (
    <FormButton
      label="Edit"
      name={url}
      title="Change the webhook"
      submit={async (fields) => {
        const states = fields.getAll('states') as WebhookState[];
        const body = {
          url: textField(fields, 'url') ?? '',
          // Null means all.
          agents: wordsField(fields, 'agents') ?? null,
          states: states.length > 0 ? states : null,
          enabled: fields.has('enabled'),
        };
        await answerOf(api.PATCH('/v1/webhooks/{id}', { params: { path: { id } }, body }));
        return undefined;
      }}
    >
      <Fields webhook={webhook} />
      <Checkbox name="enabled" label="Enabled" defaultChecked={webhook.enabled} />
    </FormButton>
  );
}

/** The form of a webhook. @param webhook its present settings */
function Fields({ webhook }: { webhook?: Webhook }) {
  return (
    <>
      <TextInput
        name="url"
        label="URL"
        description="It gets a POST for each change"
        required
        defaultValue={webhook?.url}
      />
      <TextInput
        name="agents"
        label="Only these agents"
        description="Slugs with commas between them. Empty: all"
        defaultValue={webhook?.agents?.join(', ')}
      />
      <Stack gap="xs" role="group" aria-labelledby="webhook-states">
        <Text size="sm" fw={500} id="webhook-states">
          Only these states (none: all)
        </Text>
        {STATES.map((state) => (
          <Checkbox
            key={state}
            name="states"
            value={state}
            label={state}
            defaultChecked={webhook?.states?.includes(state)}
          />
        ))}
      </Stack>
    </>
  );
}
