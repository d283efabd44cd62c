import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const secretsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/secrets',
  component: lazyPage(() => import('./secrets-page'), 'SecretsPage'),
});

export const secretsRoutes = [secretsRoute] as const;
