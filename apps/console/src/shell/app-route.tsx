import { createRootRouteWithContext, createRoute, Outlet, redirect } from '@tanstack/react-router';
import type { QueryClient } from '@tanstack/react-query';
import { ErrorView } from '../components/error-view';
import { callerQuery } from '../session/caller';
import { isSignedIn } from '../session/session';
import { Shell } from './shell';

/** The root of all pages. */
export const rootRoute = createRootRouteWithContext<{ queryClient: QueryClient }>()({ component: Outlet });

/** The parent of all pages that are shown after sign-in. They know the caller: `useCaller()`. */
export const appRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'app',
  beforeLoad: ({ location }) => {
    if (!isSignedIn()) throw redirect({ to: '/sign-in', search: { to: location.href } });
  },
  loader: async ({ context, location }) => {
    try {
      return await context.queryClient.ensureQueryData(callerQuery);
    } catch (error) {
      // A token that is not good has ended the session.
      if (!isSignedIn()) throw redirect({ to: '/sign-in', search: { to: location.href } });
      throw error;
    }
  },
  component: Shell,
  errorComponent: ({ error, reset }) => <ErrorView error={error} retry={reset} />,
});
