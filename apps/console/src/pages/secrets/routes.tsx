import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const secretsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/secrets',
  component: lazyRouteComponent(() => import('./secrets-page'), 'SecretsPage'),
});

export const secretsRoutes = [secretsRoute] as const;
