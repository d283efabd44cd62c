import { Anchor, Button, Code, Group, JsonInput, Stack, Text } from '@mantine/core';
import { schemaFields, type TenantSchemas } from '@baton/contract';
import { type SyntheticEvent, useState } from 'react';
import { Json } from '../../components/part-view';
import { AnswerField } from './answer-field';
import type { ApprovalCallProps } from './approval-call';
import { jsonObject } from './json-object';
import { answerData } from './answer-data';
import { webAddress } from './web-address';

type ApprovalQuestion = NonNullable<TenantSchemas['Approval']['question']>;

/** A question of a tool itself: a form to fill in, or an address to open. The server of the tool has written it. */
export function ToolQuestion({ question, ...props }: ApprovalCallProps & { question: ApprovalQuestion }) {
  const { tool, server, agents = [], description } = props.approval;
  return (
    <Stack gap="xs">
      <Text size="sm">
        <Code>{tool}</Code>
        {server !== undefined && (
          <>
            {' '}
            of the server <Code>{server}</Code>
          </>
        )}{' '}
        asks{agents.length > 0 && `, through ${agents.join(' → ')}`}:
      </Text>
      <Text size="sm" dir="auto" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {description}
      </Text>
      {'url' in question ? (
        <AddressQuestion url={question.url} {...props} />
      ) : (
        <SchemaQuestion schema={question.requested_schema} {...props} />
      )}
    </Stack>
  );
}

/** A person opens the address and confirms it. Baton never opens it. */
function AddressQuestion({ url, ...props }: ApprovalCallProps & { url: string }) {
  const { approval, isPending, mayDecide, onDecide } = props;
  const address = webAddress(url);
  if (!address) {
    return (
      <>
        <Text size="sm">It wants you to open an address that is not on the web.</Text>
        <Group>
          <Decline {...props} />
        </Group>
      </>
    );
  }
  return (
    <>
      <Text size="sm">
        It wants you to open an address of <b>{address.host}</b>. Open it only if you trust that host.
      </Text>
      <Anchor
        href={address.href}
        target="_blank"
        rel="noopener noreferrer"
        size="sm"
        style={{ overflowWrap: 'anywhere' }}
      >
        {address.href}
      </Anchor>
      <Group>
        <Button size="xs" loading={isPending} disabled={!mayDecide} onClick={() => onDecide(true)}>
          I have opened the address of {approval.tool}
        </Button>
        <Decline {...props} />
      </Group>
    </>
  );
}

/** The form of a schema. What no form can show is answered with JSON. */
function SchemaQuestion({ schema, ...props }: ApprovalCallProps & { schema: Record<string, unknown> }) {
  const { approval, isPending, mayDecide, onDecide } = props;
  const [json, setJson] = useState('{}');
  const fields = schemaFields(schema);
  const content = jsonObject(json);
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    onDecide(true, fields ? answerData(fields, new FormData(event.currentTarget)) : content);
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs" align="flex-start">
        {fields?.map((field) => (
          <AnswerField key={field.name} field={field} />
        ))}
        {!fields && (
          <>
            <Json value={schema} />
            <JsonInput
              label={`Answer to ${approval.tool}`}
              description="It must fit the schema above"
              value={json}
              onChange={setJson}
              error={!content && 'This is not a JSON object'}
              autosize
              minRows={3}
              maxRows={20}
              w="100%"
            />
          </>
        )}
        <Group>
          <Button type="submit" size="xs" loading={isPending} disabled={!mayDecide || (!fields && !content)}>
            Answer {approval.tool}
          </Button>
          <Decline {...props} />
        </Group>
      </Stack>
    </form>
  );
}

const Decline = ({ approval: { tool }, isPending, mayDecide, onDecide }: ApprovalCallProps) => (
  <Button size="xs" variant="default" disabled={isPending || !mayDecide} onClick={() => onDecide(false)}>
    Decline {tool}
  </Button>
);
