import { Anchor, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { textOf } from '../../components/form-button';
import { Time } from '../../components/time';

/** Begins a sign-in of the whole tenant, and shows the link with which a person goes on in another tab. */
export function BeginSignIn() {
  const [isOpen, { open, close }] = useDisclosure(false);
  const client = useQueryClient();
  const begin = useMutation({
    mutationFn: (fields: FormData) => {
      const server = textOf(fields, 'server');
      const body = { agent: textOf(fields, 'agent') ?? '', ...(server !== undefined && { server }) };
      return answerOf(api.POST('/v1/connections', { body }));
    },
  });
  const end = (): void => {
    close();
    // The sign-in may have ended in the other tab.
    if (begin.data) void client.invalidateQueries();
    begin.reset();
  };
  return (
    <>
      <Button onClick={open}>Sign in</Button>
      <Modal
        opened={isOpen}
        onClose={end}
        title="Sign in for the whole tenant"
        closeButtonProps={{ 'aria-label': 'Close' }}
        transitionProps={{ duration: 0 }}
      >
        {begin.data ? (
          <Stack>
            <Text size="sm">
              All agents of the tenant that name this server act with the account that you choose there. The
              link works until <Time at={begin.data.expires_at} />.
            </Text>
            <Anchor href={begin.data.url} target="_blank" rel="noopener noreferrer" size="sm">
              Go on with the sign-in
            </Anchor>
            <Group justify="flex-end">
              <Button onClick={end}>Done</Button>
            </Group>
          </Stack>
        ) : (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              begin.mutate(new FormData(event.currentTarget));
            }}
          >
            <Stack>
              <TextInput
                name="agent"
                label="Agent"
                description="Slug of an agent with oauth in its settings"
                required
              />
              <TextInput
                name="server"
                label="Server"
                description="Its name in these settings. Empty: the only one"
              />
              {begin.error && <ErrorView error={begin.error} />}
              <Group justify="flex-end">
                <Button variant="default" onClick={end}>
                  Cancel
                </Button>
                <Button type="submit" loading={begin.isPending}>
                  Begin
                </Button>
              </Group>
            </Stack>
          </form>
        )}
      </Modal>
    </>
  );
}
