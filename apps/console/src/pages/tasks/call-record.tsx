import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { TenantSchemas } from '@baton/contract';
import { answerOf, api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { Json } from '../../components/part-view';
import { Labelled, Plain } from './labelled';

type Recorded = TenantSchemas['CallRecord'];

/** What a model was sent in a call, and its answer as it wrote it. */
export function CallRecord({ taskId, entry }: { taskId: string; entry: number }) {
  const { data, error } = useQuery({
    queryKey: ['call record', taskId, entry],
    queryFn: ({ signal }) =>
      answerOf(
        api.GET('/v1/tasks/{id}/trace/{entry}/record', {
          params: { path: { id: taskId, entry: String(entry) } },
          signal,
        }),
      ),
  });
  if (error) return <ErrorView error={error} />;
  if (!data) return null;
  const { record } = data;
  if (!record)
    return (
      <Text size="sm">
        Baton has not recorded what the model was sent. Set <code>record: all</code> or{' '}
        <code>record: failed</code> in the agent&apos;s settings.
      </Text>
    );
  return (
    <Stack gap="xs">
      {record.sent ? <Sent sent={record.sent} /> : <Text size="sm">The call failed before it was sent.</Text>}
      <Said said={record.said} />
    </Stack>
  );
}

const leftOut = (count: number, what: string): string =>
  count > 0 ? ` (${count} ${what} not recorded)` : '';

function Sent({ sent }: { sent: NonNullable<Recorded['sent']> }) {
  const { instructions, messages, tools, parameters, left_out: left } = sent;
  return (
    <>
      {instructions !== '' && (
        <Labelled name="Sent: instructions">
          <Plain text={instructions} />
        </Labelled>
      )}
      <Labelled name={`Sent: messages${leftOut(left.messages, 'older ones are')}`}>
        <Json value={messages} />
      </Labelled>
      {tools.length > 0 && (
        <Labelled name={`Sent: tools${leftOut(left.tools, 'more are')}`}>
          <Json value={tools} />
        </Labelled>
      )}
      <Labelled name="Sent: parameters">
        <Json value={parameters} />
      </Labelled>
    </>
  );
}

function Said({ said }: { said: Recorded['said'] }) {
  const { left_out: left } = said;
  return (
    <>
      {said.reasoning !== '' && (
        <Labelled name="Said: reasoning">
          <Plain text={said.reasoning} />
        </Labelled>
      )}
      {said.text !== '' && (
        <Labelled name={`Said: text${leftOut(left.characters, 'characters of the answer are')}`}>
          <Plain text={said.text} />
        </Labelled>
      )}
      {said.calls.map(({ tool, input }, i) => (
        <Labelled key={i} name={`Said: call of ${tool}`}>
          <Plain text={input} />
        </Labelled>
      ))}
      {said.complaint && (
        <Labelled name="Said: the provider's complaint">
          <Json value={said.complaint} />
        </Labelled>
      )}
    </>
  );
}
