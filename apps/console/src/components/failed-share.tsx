import { Text } from '@mantine/core';

const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent' });
/** A share of failures that is shown in red. */
const MUCH = 0.1;

/** How many of some tasks have failed. There is at least one task. */
export function FailedShare({ of: { tasks, failed } }: { of: { tasks: number; failed: number } }) {
  const isMuch = failed / tasks >= MUCH;
  return (
    <Text
      inherit
      component="span"
      style={{ whiteSpace: 'nowrap' }}
      {...(isMuch && { c: 'var(--mantine-color-error)', fw: 700 })}
    >
      {PERCENT.format(failed / tasks)} ({failed} of {tasks})
    </Text>
  );
}
