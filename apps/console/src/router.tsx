import { Anchor } from '@mantine/core';
import { createRouter, Link } from '@tanstack/react-router';
import { queryClient } from './api/query-client';
import { EmptyState } from './components/empty-state';
import { PageError } from './components/page-error';
import { agentsRoutes } from './pages/agents/routes';
import { auditRoutes } from './pages/audit/routes';
import { bulkRoutes } from './pages/bulk/routes';
import { deadLettersRoutes } from './pages/dead-letters/routes';
import { homeRoutes } from './pages/home/routes';
import { inboxRoutes } from './pages/inbox/routes';
import { operatorsRoutes } from './pages/operators/routes';
import { playgroundRoutes } from './pages/playground/routes';
import { schedulesRoutes } from './pages/schedules/routes';
import { secretsRoutes } from './pages/secrets/routes';
import { signInsRoutes } from './pages/sign-ins/routes';
import { signInRoutes } from './pages/sign-in/routes';
import { tasksRoutes } from './pages/tasks/routes';
import { tokensRoutes } from './pages/tokens/routes';
import { usageRoutes } from './pages/usage/routes';
import { webhooksRoutes } from './pages/webhooks/routes';
import { appRoute, operatorRoute, rootRoute } from './shell/app-route';
import { BASE } from './base';

// Each folder of `pages` has a `routes.tsx`. Add its routes here, and its entry in `shell/navigation.ts`.
const routeTree = rootRoute.addChildren([
  ...signInRoutes,
  appRoute.addChildren([
    ...homeRoutes,
    ...agentsRoutes,
    ...playgroundRoutes,
    ...tasksRoutes,
    ...bulkRoutes,
    ...inboxRoutes,
    ...schedulesRoutes,
    ...webhooksRoutes,
    ...deadLettersRoutes,
    ...usageRoutes,
    ...secretsRoutes,
    ...signInsRoutes,
    ...tokensRoutes,
    ...auditRoutes,
  ]),
  operatorRoute.addChildren([...operatorsRoutes]),
]);

export const router = createRouter({
  routeTree,
  basepath: `${BASE}/console`,
  context: { queryClient },
  defaultErrorComponent: PageError,
  defaultNotFoundComponent: () => (
    <EmptyState title="There is no such page">
      The address may have a typing error.{' '}
      <Anchor component={Link} to="/" underline="always">
        Go to the first page
      </Anchor>
    </EmptyState>
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
