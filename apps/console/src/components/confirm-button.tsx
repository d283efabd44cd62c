import { Button, type ButtonProps, Group, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorView } from './error-view';
import { SecretOnce } from './form-button';

/** Red that can be read on the background of either scheme (WCAG AA). */
const DANGER = 'light-dark(var(--mantine-color-red-9), var(--mantine-color-red-4))';

/**
 * A button for what cannot be undone. It asks first, says what will happen, and shows what went wrong.
 * @param act resolves with a text if it has made a secret, which is shown once
 */
export function ConfirmButton({
  label,
  question,
  children,
  act,
  name,
  dismiss = 'Cancel',
  ...button
}: {
  label: string;
  /** The title of the dialog. */
  question: string;
  /** What will happen. */
  children: ReactNode;
  act: () => Promise<unknown>;
  /** For screen readers: what the button is about, where the label does not say it. */
  name?: string;
  /** The button that closes the dialog without doing it. */
  dismiss?: string;
} & Omit<ButtonProps, 'children'>) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const client = useQueryClient();
  const mutation = useMutation({
    mutationFn: act,
    onSuccess: async (made) => {
      if (typeof made !== 'string') close();
      await client.invalidateQueries();
    },
  });
  const end = (): void => {
    close();
    mutation.reset();
  };
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        c={DANGER}
        {...button}
        onClick={open}
        {...(name !== undefined && { 'aria-label': `${label} ${name}` })}
      >
        {label}
      </Button>
      <Modal
        opened={isOpen}
        onClose={end}
        title={question}
        closeOnClickOutside={typeof mutation.data !== 'string'}
        closeButtonProps={{ 'aria-label': 'Close' }}
        transitionProps={{ duration: 0 }}
      >
        {typeof mutation.data === 'string' ? (
          <SecretOnce secret={mutation.data} onClose={end} />
        ) : (
          <Stack>
            <Text size="sm" component="div">
              {children}
            </Text>
            {mutation.error && <ErrorView error={mutation.error} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={end}>
                {dismiss}
              </Button>
              <Button color="red" loading={mutation.isPending} onClick={() => mutation.mutate()}>
                {label}
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </>
  );
}
