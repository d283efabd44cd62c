import { Text } from '@mantine/core';

const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent' });
/** A share of failures that is shown in red. */
const MUCH = 0.1;

/** How many of some tasks have failed. There is at least one task. @param mayWrap not in a table, whose rows stay one line high */
export function FailedShare({
  of: { tasks, failed },
  mayWrap = false,
}: {
  of: { tasks: number; failed: number };
  mayWrap?: boolean;
}) {
  const isMuch = failed / tasks >= MUCH;
  return (
    <Text
      inherit
      component="span"
      style={{ whiteSpace: mayWrap ? 'normal' : 'nowrap' }}
      {...(isMuch && { c: 'var(--mantine-color-error)', fw: 700 })}
    >
      {PERCENT.format(failed / tasks)} ({failed} of {tasks})
    </Text>
  );
}
