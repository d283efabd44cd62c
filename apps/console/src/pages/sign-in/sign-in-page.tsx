import { Alert, Button, Code, Divider, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { type SyntheticEvent, useEffect, useState } from 'react';
import { answerOf, api, operatorApi } from '../../api/client';
import { ErrorView } from '../../components/error-view';
import { callerQuery } from '../../session/caller';
import { isForOperators, operatorQuery } from '../../session/operator';
import { beginSession, endSession, useSession } from '../../session/session';
import { consoleSettings } from '../../session/settings';
import { queryClient } from '../../api/query-client';
import { BASE } from '../../base';
import { COMMAND_LINE } from '../../command-line';

const route = getRouteApi('/sign-in');

/** Sign-in with a token, or at the OpenID provider. */
export function SignInPage() {
  const { to = '/' } = route.useSearch();
  const router = useRouter();
  const { reason } = useSession();
  const [token, setToken] = useState('');
  useEffect(() => {
    document.title = 'Sign in · Baton';
    // Nothing of the last session is shown in the next one.
    queryClient.clear();
  }, []);
  const settings = useQuery({
    queryKey: ['console-settings'],
    queryFn: consoleSettings,
    staleTime: Infinity,
    // Operators sign in with their tokens alone.
    enabled: !isForOperators,
  });
  const withToken = useMutation({
    mutationFn: async () => {
      beginSession({ kind: 'token', token: token.trim() });
      try {
        if (isForOperators) {
          const operator = await answerOf(operatorApi.GET('/v1/admin/whoami'));
          queryClient.setQueryData(operatorQuery.queryKey, operator);
        } else queryClient.setQueryData(callerQuery.queryKey, await answerOf(api.GET('/v1/whoami')));
      } catch (error) {
        endSession();
        throw error;
      }
    },
    onSuccess: () => router.history.push(`${BASE}/console${to}`),
  });
  const atProvider = useMutation({
    mutationFn: async () => (await import('../../session/oidc')).signInAtProvider(to),
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    withToken.mutate();
  };
  return (
    <Paper component="main" maw="28rem" mx="auto" mt="10vh" p="xl" withBorder>
      <Stack>
        <Title order={1} size="h2">
          {isForOperators ? 'Sign in as an operator' : 'Sign in to Baton'}
        </Title>
        {reason !== undefined && (
          <Alert color="yellow" title="You were signed out">
            {reason}
          </Alert>
        )}
        {settings.data?.oidc && (
          <>
            <Button loading={atProvider.isPending} onClick={() => atProvider.mutate()}>
              Sign in at {new URL(settings.data.oidc.issuer).host}
            </Button>
            {atProvider.error && <ErrorView error={atProvider.error} />}
            <Divider label="or" />
          </>
        )}
        <form onSubmit={submit}>
          <Stack>
            <PasswordInput
              label="Token"
              description="It stays in this tab and is forgotten when you close it."
              value={token}
              onChange={({ currentTarget }) => setToken(currentTarget.value)}
              autoComplete="off"
              spellCheck={false}
              required
              data-autofocus
              autoFocus
            />
            <Button
              type="submit"
              variant={settings.data?.oidc ? 'light' : 'filled'}
              loading={withToken.isPending}
            >
              Sign in
            </Button>
          </Stack>
        </form>
        {withToken.error && <ErrorView error={withToken.error} title="You are not signed in" />}
        {isForOperators ? (
          <Text size="sm">
            It needs a token of an operator: <Code>{COMMAND_LINE} operator-tokens create</Code>
          </Text>
        ) : (
          <Text size="sm">
            No token? <Code>npm start</Code> prints one. An administrator of your tenant makes others on the
            page Tokens. The operator makes the first one:{' '}
            <Code>{COMMAND_LINE} tokens create --tenant SLUG --scopes admin</Code>
          </Text>
        )}
      </Stack>
    </Paper>
  );
}
