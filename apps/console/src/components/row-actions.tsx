import { Group } from '@mantine/core';
import type { ReactNode } from 'react';

/** The buttons of a row of a table: on one line, and on as many as they need where the row is a card. */
export const RowActions = ({ children }: { children: ReactNode }) => (
  <Group gap="xs" miw={{ base: 0, sm: 'max-content' }}>
    {children}
  </Group>
);
