import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const deadLettersRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/dead-letters',
  component: lazyPage(() => import('./dead-letters-page'), 'DeadLettersPage'),
});

export const deadLettersRoutes = [deadLettersRoute] as const;
