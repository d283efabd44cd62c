import { Checkbox, Group, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answerOf, operatorApi } from '../../api/client';
import { bytesText, limitText } from '../../components/bytes-text';
import { ConfirmButton } from '../../components/confirm-button';
import { ErrorView } from '../../components/error-view';
import { FormButton } from '../../components/form-button';
import { textField } from '../../components/form-fields';
import { Page } from '../../components/page';
import { Section } from '../../components/section';
import { Time } from '../../components/time';
import { SimpleTable } from '../../components/simple-table';
import { TenantState } from './tenants-page';
import { COMMAND_LINE } from '../../command-line';

const route = getRouteApi('/operators/operators/tenants/$tenant');
const NUMBER = new Intl.NumberFormat();

/** One tenant: its state, what it uses and its limits. Nothing of its tasks. */
export function TenantPage() {
  const { tenant: slug } = route.useParams();
  const at = { params: { path: { tenant: slug } } };
  const { data, error, refetch } = useQuery({
    queryKey: ['operators', 'tenant', slug],
    queryFn: async () => {
      const [tenant, usage, { limits }] = await Promise.all([
        answerOf(operatorApi.GET('/v1/admin/tenants/{tenant}', at)),
        answerOf(operatorApi.GET('/v1/admin/tenants/{tenant}/usage', at)),
        answerOf(operatorApi.GET('/v1/admin/tenants/{tenant}/limits', at)),
      ]);
      return { tenant, usage, limits };
    },
  });
  if (error) return <ErrorView error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton height="8rem" aria-label="Loading the tenant" role="status" />;
  const { tenant, usage, limits } = data;
  const isSuspended = tenant.suspended_at !== null;
  return (
    <Page
      title={slug}
      actions={
        tenant.deleting_at === null && (isSuspended ? <Resume slug={slug} /> : <Suspend slug={slug} />)
      }
    >
      <Group>
        <TenantState tenant={tenant} />
        {isSuspended && (
          <Text size="sm">
            since <Time at={tenant.suspended_at} />: {tenant.suspended_reason ?? 'no reason given'}
          </Text>
        )}
      </Group>
      <Stack gap="xl">
        <Section title="Usage">
          <SimpleTable
            name="Usage"
            titles={['What', 'Now']}
            rows={[
              ['Runs that wait or are queued', NUMBER.format(usage.queued_runs)],
              ['Runs in execution', NUMBER.format(usage.running_runs)],
              ['Suspended runs', NUMBER.format(usage.suspended_runs)],
              ['Dead letters', NUMBER.format(usage.dead_letters)],
              [
                'Stored in the database',
                usage.stored_bytes === null ? 'not counted' : bytesText(usage.stored_bytes),
              ],
            ].map(([key = '', value]) => ({ key, cells: [key, value] }))}
          />
          {usage.days.length > 0 && (
            <SimpleTable
              name="Tokens of models"
              titles={['Day (UTC)', 'Input tokens', 'Output tokens']}
              rows={usage.days.map(({ day, input_tokens: input, output_tokens: output }) => ({
                key: day,
                cells: [day, NUMBER.format(input), NUMBER.format(output)],
              }))}
            />
          )}
        </Section>
        <Section title="Limits">
          <SimpleTable
            name="Limits"
            titles={['Limit', 'At most', 'From']}
            rows={Object.entries(limits).map(([name, { value, from }]) => ({
              key: name,
              cells: [name, value === null ? 'no limit' : limitText(name, value), from],
            }))}
          />
          <Text size="sm">
            To change one: {COMMAND_LINE} tenants limits {slug} --help
          </Text>
        </Section>
      </Stack>
    </Page>
  );
}

function Suspend({ slug }: { slug: string }) {
  return (
    <FormButton
      label="Suspend"
      title={`Suspend ${slug}?`}
      submit={async (fields) => {
        const reason = textField(fields, 'reason');
        await operatorApi.POST('/v1/admin/tenants/{tenant}/suspend', {
          params: { path: { tenant: slug } },
          body: { stop: fields.has('stop'), ...(reason !== undefined && { reason }) },
        });
        return undefined;
      }}
    >
      <Text size="sm">
        All calls of its tokens, users and guests are refused immediately. Nothing is deleted.
      </Text>
      <TextInput name="reason" label="Reason" description="Callers see it in the error." maxLength={200} />
      <Checkbox name="stop" label="Cancel its tasks that have not ended" />
    </FormButton>
  );
}

function Resume({ slug }: { slug: string }) {
  return (
    <ConfirmButton
      label="Resume"
      name={slug}
      question={`Resume ${slug}?`}
      act={() =>
        operatorApi.POST('/v1/admin/tenants/{tenant}/resume', { params: { path: { tenant: slug } } })
      }
    >
      Its callers are served again immediately.
    </ConfirmButton>
  );
}
