import { createRoute, redirect } from '@tanstack/react-router';
import { EmptyState } from '../../components/empty-state';
import { lazyPage } from '../../components/lazy-page';
import { callerQuery, hasScope } from '../../session/caller';
import { appRoute } from '../../shell/app-route';
import { HOME, NAVIGATION } from '../../shell/navigation';

/** The root of the console: how the tasks went. A user who may not see tasks gets the first page that the token may see. */
const homeRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/',
  loader: async ({ context }) => {
    const caller = await context.queryClient.ensureQueryData(callerQuery);
    if (hasScope(caller, HOME.scopes)) return;
    const first = NAVIGATION.flatMap(({ entries }) => entries).find(({ scopes }) => hasScope(caller, scopes));
    throw redirect({ to: first?.to ?? '/nothing', replace: true });
  },
  component: lazyPage(() => import('./home-page'), 'HomePage'),
});

const nothingRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/nothing',
  component: () => (
    <EmptyState title="Nothing to see with this token">
      It has no scope that a page needs. Ask an administrator of your tenant for a token with tasks:read.
    </EmptyState>
  ),
});

export const homeRoutes = [homeRoute, nothingRoute] as const;
