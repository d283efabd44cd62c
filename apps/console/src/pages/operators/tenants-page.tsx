import { Anchor, TextInput } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { answerOf, operatorApi } from '../../api/client';
import type { OperatorSchemas } from '@baton/contract';
import { EmptyState } from '../../components/empty-state';
import { FormButton } from '../../components/form-button';
import { textField } from '../../components/form-fields';
import { Page } from '../../components/page';
import { PagedTable } from '../../components/paged-table';
import { StateWord } from '../../components/state-word';
import { Time } from '../../components/time';
import { COMMAND_LINE } from '../../command-line';

type Tenant = OperatorSchemas['Tenant'];

/** Whether a tenant may call. */
export function TenantState({ tenant }: { tenant: Tenant }) {
  if (tenant.deleting_at !== null) return <StateWord colour="gray" word="being deleted" />;
  if (tenant.suspended_at === null) return <StateWord colour="green" word="active" />;
  return <StateWord colour="red" word="suspended" />;
}

/** All tenants by their slugs. */
export function TenantsPage() {
  return (
    <Page title="Tenants" actions={<CreateTenant />}>
      <PagedTable
        name="Tenants"
        read={async (cursor) => {
          const page = await answerOf(
            operatorApi.GET('/v1/admin/tenants', { params: { query: { cursor } } }),
          );
          return { entries: page.tenants, next: page.next_cursor };
        }}
        idOf={({ id }) => id}
        columns={[
          {
            title: 'Tenant',
            cell: ({ slug }) => (
              <Anchor component={Link} to={`/operators/tenants/${slug}`} size="sm" underline="always">
                {slug}
              </Anchor>
            ),
          },
          { title: 'State', cell: (tenant) => <TenantState tenant={tenant} /> },
          { title: 'Suspended since', cell: ({ suspended_at: at }) => <Time at={at} /> },
          { title: 'Reason', cell: ({ suspended_reason: reason }) => reason ?? '–' },
          { title: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
        ]}
        empty={
          <EmptyState title="No tenants yet" command={`${COMMAND_LINE} tenants create acme`}>
            A tenant has its own tasks, agents, tokens and limits.
          </EmptyState>
        }
      />
    </Page>
  );
}

function CreateTenant() {
  return (
    <FormButton
      label="Create tenant"
      title="Create a tenant"
      submit={async (fields) => {
        await operatorApi.POST('/v1/admin/tenants', { body: { slug: textField(fields, 'slug') ?? '' } });
        return undefined;
      }}
    >
      <TextInput
        name="slug"
        label="Slug"
        description="Lower-case letters, digits and hyphens. It cannot be changed."
        required
        data-autofocus
      />
    </FormButton>
  );
}
