import { Text } from '@mantine/core';
import { usePrincipalName } from '../../session/principal-names';
import type { Approval } from './log-entries';

/** What a person has decided on a tool call. */
export function Decision({ of: { approved, by } }: { of: Approval }) {
  const nameOf = usePrincipalName();
  if (by === null) return <Text size="sm">No answer came in time</Text>;
  return (
    <Text size="sm" title={by}>
      {approved ? 'Approved' : 'Rejected'} by {nameOf(by)}
    </Text>
  );
}
