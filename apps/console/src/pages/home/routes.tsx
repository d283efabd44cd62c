import { createRoute, redirect } from '@tanstack/react-router';
import { EmptyState } from '../../components/empty-state';
import { callerQuery, hasScope } from '../../session/caller';
import { appRoute } from '../../shell/app-route';
import { NAVIGATION } from '../../shell/navigation';

/** The root of the console: the tasks, or the first page that the caller may see. */
const homeRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/',
  loader: async ({ context }) => {
    const caller = await context.queryClient.ensureQueryData(callerQuery);
    const seen = NAVIGATION.flatMap(({ entries }) => entries).filter(({ scopes }) =>
      hasScope(caller, scopes),
    );
    const first = seen.find(({ to }) => to === '/tasks') ?? seen[0];
    if (first) throw redirect({ to: first.to, replace: true });
  },
  component: () => (
    <EmptyState title="Nothing to see with this token">
      It has no scope that a page needs. Ask an administrator of your tenant for a token with tasks:read.
    </EmptyState>
  ),
});

export const homeRoutes = [homeRoute] as const;
