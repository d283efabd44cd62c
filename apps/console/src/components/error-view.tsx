import { Alert, Button, Code, List, Stack, Text } from '@mantine/core';
import { ApiError } from '../api/api-error';

/** What went wrong and what to do: the message of the server, the wrong fields, and another try where that may help. */
export function ErrorView({ error, retry, title }: { error: unknown; retry?: () => void; title?: string }) {
  const fault = error instanceof Error ? error : new Error(String(error));
  const { fields, requestId, isTransient } =
    fault instanceof ApiError ? fault : { fields: [], requestId: undefined, isTransient: true };
  return (
    <Alert color="red" variant="light" title={title ?? 'That did not work'} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{fault.message}</Text>
        {fields.length > 0 && (
          <List size="sm">
            {fields.map(({ field, description }) => (
              <List.Item key={`${field} ${description}`}>
                <Code>{field}</Code> {description}
              </List.Item>
            ))}
          </List>
        )}
        {requestId !== undefined && (
          <Text size="xs">
            Request <Code>{requestId}</Code>
          </Text>
        )}
        {retry && isTransient && (
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
