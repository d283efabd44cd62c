import { Code, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** What a list is for while it is empty, and how to fill it. @param command what to paste into a terminal */
export function EmptyState({
  title,
  children,
  command,
}: {
  title: string;
  children: ReactNode;
  command?: string;
}) {
  return (
    <Stack align="center" gap="xs" py="xl" w="100%" maw="40rem" mx="auto">
      <Title order={2} size="h4">
        {title}
      </Title>
      <Text ta="center">{children}</Text>
      {command !== undefined && (
        <Code block maw="100%" tabIndex={0} style={{ whiteSpace: 'pre-wrap' }}>
          {command}
        </Code>
      )}
    </Stack>
  );
}
