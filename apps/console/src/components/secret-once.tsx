import { Alert, Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core';

/** A secret that the server shows once. @param isLeaving the user has tried to close the dialog: warn */
export function SecretOnce({
  secret,
  isLeaving,
  onClose,
}: {
  secret: string;
  isLeaving: boolean;
  onClose: () => void;
}) {
  return (
    <Stack>
      {isLeaving ? (
        <Alert color="red" variant="light" title="Have you copied it?" role="alert">
          <Text size="sm">It is never shown again. Done closes the dialog.</Text>
        </Alert>
      ) : (
        <Alert variant="default" title="Copy it now">
          <Text size="sm">It is never shown again. If you lose it, make a new one.</Text>
        </Alert>
      )}
      <Code block tabIndex={0} aria-label="Secret">
        {secret}
      </Code>
      <Group justify="flex-end">
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}
