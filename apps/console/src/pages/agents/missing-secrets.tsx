import { Alert, Button, Code, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { SyntheticEvent } from 'react';
import { api } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { useCaller } from '../../session/caller';
import { agentQuery } from './agents-api';

/** The secrets without which an agent fails, to be set here. Nothing for an agent that has all, or that the caller may not read. */
export function MissingSecrets({ agent }: { agent: string }) {
  const { can } = useCaller();
  const { data } = useQuery({
    ...agentQuery(agent),
    enabled: agent !== '' && can('agents:read', 'agents:write'),
    retry: false,
  });
  const missing = data?.agent.missing_secrets ?? [];
  if (missing.length === 0) return null;
  return (
    <Alert variant="default" title={missing.length === 1 ? 'A secret is missing' : 'Secrets are missing'}>
      <Stack gap="xs">
        <Text size="sm">The agent fails until it is set.</Text>
        {missing.map(({ name, origins }) =>
          can('secrets:write') ? (
            <SetMissing key={name} name={name} origins={origins} />
          ) : (
            <Text key={name} size="sm">
              <Code>{name}</Code>: ask for a token with the scope secrets:write to set it.
            </Text>
          ),
        )}
      </Stack>
    </Alert>
  );
}

/** @param origins where the agent sends it. The secret may be sent there alone */
function SetMissing({ name, origins }: { name: string; origins: string[] }) {
  const client = useQueryClient();
  const set = useMutation({
    mutationFn: (value: string) =>
      api.PUT('/v1/secrets/{name}', { params: { path: { name } }, body: { value, origins } }),
    onSuccess: () => client.invalidateQueries(),
  });
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const value = new FormData(event.currentTarget).get('value');
    if (typeof value === 'string' && value !== '') set.mutate(value);
  };
  return (
    <form onSubmit={submit}>
      <Group align="flex-end" gap="xs">
        <PasswordInput
          name="value"
          label={`Value of ${name}`}
          description={`It may be sent to ${origins.join(', ')} alone`}
          required
          autoComplete="off"
          flex={1}
        />
        <Button type="submit" variant="default" loading={set.isPending}>
          Set {name}
        </Button>
      </Group>
      {set.error && <ErrorView error={set.error} />}
    </form>
  );
}
