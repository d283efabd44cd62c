import { Stack, Title } from '@mantine/core';

/** A part of a page with its title. */
export function Section({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <Stack component="section" gap="xs">
      <Title order={2} size="h4">
        {title}
      </Title>
      {children}
    </Stack>
  );
}
