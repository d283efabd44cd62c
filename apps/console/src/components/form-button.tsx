import { Button, Group, Modal, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ErrorView } from './error-view';
import { SecretOnce } from './secret-once';

/**
 * A button that opens a form. `submit` sends what was filled in.
 * @param name for screen readers: the name of the row that the button belongs to. The button is small then
 * @param submit resolves with what `result` shows in place of the form until the dialog is closed, or with nothing
 * @param result unset: `submit` resolves with a secret, which is shown once
 */
export function FormButton<Made = string>({
  label,
  title,
  name,
  children,
  submit,
  result,
}: {
  label: string;
  title: string;
  name?: string;
  children: ReactNode;
  submit: (fields: FormData) => Promise<Made | undefined>;
  result?: (made: Made) => ReactNode;
}) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const [isLeaving, setLeaving] = useState(false);
  const client = useQueryClient();
  const mutation = useMutation({
    mutationFn: submit,
    onSuccess: async (made) => {
      if (made === undefined) end();
      await client.invalidateQueries();
    },
  });
  const made = mutation.data;
  const secret = result === undefined && typeof made === 'string' ? made : undefined;
  const end = (): void => {
    close();
    // The user may have used the result in another tab, which changes other data.
    if (made !== undefined && result) void client.invalidateQueries();
    mutation.reset();
    setLeaving(false);
  };
  return (
    <>
      {name === undefined ? (
        <Button onClick={open}>{label}</Button>
      ) : (
        <Button size="compact-sm" variant="default" onClick={open} aria-label={`${label} ${name}`}>
          {label}
        </Button>
      )}
      <Modal
        opened={isOpen}
        // A secret is shown only once: warn before the dialog closes.
        onClose={() => (secret === undefined ? end() : setLeaving(true))}
        title={title}
        closeOnClickOutside={false}
        closeButtonProps={{ 'aria-label': 'Close' }}
        transitionProps={{ duration: 0 }}
      >
        {secret !== undefined ? (
          <SecretOnce secret={secret} isLeaving={isLeaving} onClose={end} />
        ) : made !== undefined && result ? (
          <Stack>
            {result(made)}
            <Group justify="flex-end">
              <Button onClick={end}>Done</Button>
            </Group>
          </Stack>
        ) : (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              mutation.mutate(new FormData(event.currentTarget));
            }}
          >
            <Stack>
              {children}
              {mutation.error && <ErrorView error={mutation.error} />}
              <Group justify="flex-end">
                <Button variant="default" onClick={end}>
                  Cancel
                </Button>
                <Button type="submit" loading={mutation.isPending}>
                  {label}
                </Button>
              </Group>
            </Stack>
          </form>
        )}
      </Modal>
    </>
  );
}
