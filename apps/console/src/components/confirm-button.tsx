import { Button, type ButtonProps, Group, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ErrorView } from './error-view';
import { SecretOnce } from './secret-once';

/** Red that can be read on the background of either scheme (WCAG AA). */
const DANGER = 'light-dark(var(--mantine-color-red-9), var(--mantine-color-red-4))';

/**
 * A button for what should not happen by accident. It asks for confirmation, explains the effect, and shows an error.
 * @param act resolves with a text if it has made a secret, which is shown once
 */
export function ConfirmButton({
  label,
  question,
  children,
  act,
  name,
  dismiss = 'Cancel',
  isHarmless = false,
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
  /** It destroys nothing: the button is not red. */
  isHarmless?: boolean;
} & Omit<ButtonProps, 'children'>) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const [isLeaving, setLeaving] = useState(false);
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
    setLeaving(false);
  };
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        {...(!isHarmless && button.disabled !== true && { c: DANGER })}
        {...button}
        onClick={open}
        {...(name !== undefined && { 'aria-label': `${label} ${name}` })}
      >
        {label}
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => (typeof mutation.data === 'string' ? setLeaving(true) : end())}
        title={question}
        closeOnClickOutside={typeof mutation.data !== 'string'}
        closeButtonProps={{ 'aria-label': 'Close' }}
        transitionProps={{ duration: 0 }}
      >
        {typeof mutation.data === 'string' ? (
          <SecretOnce secret={mutation.data} isLeaving={isLeaving} onClose={end} />
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
              <Button
                {...(!isHarmless && { color: 'red' })}
                loading={mutation.isPending}
                onClick={() => mutation.mutate()}
              >
                {label}
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </>
  );
}
