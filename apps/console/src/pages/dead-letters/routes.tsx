import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const deadLettersRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/dead-letters',
  component: lazyRouteComponent(() => import('./dead-letters-page'), 'DeadLettersPage'),
});

export const deadLettersRoutes = [deadLettersRoute] as const;
