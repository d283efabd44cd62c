import { Button, type ButtonProps, Group, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorView } from './error-view';

/** A button for what cannot be undone. It asks first, says what will happen, and shows what went wrong. */
export function ConfirmButton({
  label,
  question,
  children,
  act,
  name,
  ...button
}: {
  label: string;
  /** The title of the dialog. */
  question: string;
  /** What will happen. */
  children: ReactNode;
  act: () => Promise<unknown>;
  /** For screen readers: what the button is about. */
  name: string;
} & Omit<ButtonProps, 'children'>) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const client = useQueryClient();
  const mutation = useMutation({
    mutationFn: act,
    onSuccess: async () => {
      close();
      await client.invalidateQueries();
    },
  });
  return (
    <>
      <Button size="compact-sm" variant="default" {...button} onClick={open} aria-label={`${label} ${name}`}>
        {label}
      </Button>
      <Modal
        opened={isOpen}
        onClose={close}
        title={question}
        closeButtonProps={{ 'aria-label': 'Close' }}
        transitionProps={{ duration: 0 }}
      >
        <Stack>
          <Text size="sm" component="div">
            {children}
          </Text>
          {mutation.error && <ErrorView error={mutation.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button color="red" loading={mutation.isPending} onClick={() => mutation.mutate()}>
              {label}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
