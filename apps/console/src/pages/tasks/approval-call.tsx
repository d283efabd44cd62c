import { Button, Code, Group, JsonInput, Stack, Text } from '@mantine/core';
import type { TenantSchemas } from '@baton/contract';
import { useState } from 'react';
import { Json } from '../../components/part-view';
import { Time } from '../../components/time';
import { jsonObject } from './json-object';

export interface ApprovalCallProps {
  approval: TenantSchemas['Approval'];
  isPending: boolean;
  mayDecide: boolean;
  /** @param input of an approved call: the input to which the person has changed it */
  onDecide: (isApproved: boolean, input?: unknown) => void;
}

/** A tool call that a person must approve, as it is or with another input, or refuse. */
export function ApprovalCall({ approval, isPending, mayDecide, onDecide }: ApprovalCallProps) {
  const { tool, agents = [], description, input, expires_at: expires, unknown_outcome: isUnknown } = approval;
  const [changed, setChanged] = useState<string>();
  const edited = changed === undefined ? undefined : jsonObject(changed);
  const isWrong = changed !== undefined && edited === undefined;
  return (
    <Stack gap="xs">
      <Text size="sm">
        May {agents.at(-1) ?? 'it'} call <Code>{tool}</Code>
        {isUnknown && ' again'}? {description}
      </Text>
      {isUnknown && (
        <Text size="sm">
          The call was sent, and its outcome is not known. Look at the system that it changes.
        </Text>
      )}
      {agents.length > 1 && <Text size="sm">Asked through {agents.join(' → ')}</Text>}
      {changed === undefined ? (
        <Json value={input} />
      ) : (
        <JsonInput
          label={`Input of ${tool}`}
          value={changed}
          onChange={setChanged}
          error={isWrong && 'This is not a JSON object'}
          autosize
          minRows={3}
          maxRows={20}
        />
      )}
      {expires !== undefined && (
        <Text size="sm">
          Refused by itself at <Time at={expires} />
        </Text>
      )}
      <Group>
        <Button
          size="xs"
          loading={isPending}
          disabled={!mayDecide || isWrong}
          onClick={() => onDecide(true, edited)}
        >
          Approve {tool}
          {edited !== undefined && ' with this input'}
        </Button>
        <Button
          size="xs"
          variant="default"
          disabled={isPending || !mayDecide}
          onClick={() => onDecide(false)}
        >
          Reject {tool}
        </Button>
        {!isUnknown && (
          <Button
            size="xs"
            variant="subtle"
            disabled={isPending || !mayDecide}
            onClick={() => setChanged(changed === undefined ? JSON.stringify(input, null, 2) : undefined)}
          >
            {changed === undefined ? 'Change the input' : 'Keep the input'}
          </Button>
        )}
      </Group>
    </Stack>
  );
}
