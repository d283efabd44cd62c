import { Button, Stack, Title } from '@mantine/core';
import { createRoute, type ErrorComponentProps, redirect } from '@tanstack/react-router';
import { queryClient } from '../../api/query-client';
import { ErrorView } from '../../components/error-view';
import { redeemLink } from '../../session/link';
import { beginSession } from '../../session/session';
import { rootRoute } from '../../shell/app-route';
import { SignInPage } from './sign-in-page';
import { BASE } from '../../base';

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  // Only a path of the console: `//elsewhere` would be another host.
  validateSearch: ({ to }: Record<string, unknown>): { to?: string } =>
    typeof to === 'string' && /^\/(?!\/)/.test(to) ? { to } : {},
  component: SignInPage,
});

/** The redirect URI of the OpenID provider. */
const signedInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/signed-in',
  loader: async () => {
    const { completeSignIn } = await import('../../session/oidc');
    const { name, to } = await completeSignIn();
    queryClient.clear();
    beginSession({ kind: 'oidc', name });
    throw redirect({ to, replace: true });
  },
  errorComponent: NotSignedIn,
});

/** The link that `npm start` prints. Its code is exchanged once for a token. */
const linkRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/link',
  loader: async () => {
    const token = await redeemLink();
    queryClient.clear();
    beginSession({ kind: 'token', token });
    throw redirect({ to: '/', replace: true });
  },
  errorComponent: NotSignedIn,
});

function NotSignedIn({ error }: ErrorComponentProps) {
  return (
    <Stack component="main" maw="28rem" mx="auto" mt="10vh">
      <Title order={1} size="h2">
        Sign in to Baton
      </Title>
      <ErrorView error={error} title="You are not signed in" />
      {/* The page is loaded again: nothing of the failed sign-in is left. */}
      <Button component="a" href={`${BASE}/console/sign-in`}>
        Sign in again
      </Button>
    </Stack>
  );
}

export const signInRoutes = [signInRoute, signedInRoute, linkRoute] as const;
