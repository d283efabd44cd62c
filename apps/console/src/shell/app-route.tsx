import { createRootRouteWithContext, createRoute, notFound, Outlet, redirect } from '@tanstack/react-router';
import type { QueryClient } from '@tanstack/react-query';
import { PageError } from '../components/page-error';
import { callerQuery } from '../session/caller';
import { isForOperators, operatorQuery } from '../session/operator';
import { isSignedIn } from '../session/session';
import { OperatorShell, Shell } from './shell';

/** The root of all pages. */
export const rootRoute = createRootRouteWithContext<{ queryClient: QueryClient }>()({ component: Outlet });

function requireSignIn(href: string): void {
  if (!isSignedIn()) throw redirect({ to: '/sign-in', search: { to: href } });
}

/** Reads who has signed in. An invalid token has ended the session. */
async function readSignedIn(read: Promise<unknown>, href: string): Promise<void> {
  try {
    await read;
  } catch (error) {
    requireSignIn(href);
    throw error;
  }
}

/** The parent of all pages of a tenant that are shown after sign-in. They have the caller: `useCaller()`. */
export const appRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'app',
  beforeLoad: ({ location }) => {
    if (isForOperators) throw redirect({ to: '/operators/workers' });
    requireSignIn(location.href);
  },
  loader: ({ context, location }) =>
    readSignedIn(context.queryClient.ensureQueryData(callerQuery), location.href),
  component: Shell,
  errorComponent: PageError,
});

/** The parent of the pages of operators, at the management port. They have the operator: `useOperator()`. */
export const operatorRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'operators',
  beforeLoad: ({ location }) => {
    if (!isForOperators) throw notFound();
    requireSignIn(location.href);
  },
  loader: ({ context, location }) =>
    readSignedIn(context.queryClient.ensureQueryData(operatorQuery), location.href),
  component: OperatorShell,
  errorComponent: PageError,
});
