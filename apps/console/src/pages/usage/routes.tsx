import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const usageRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/usage',
  component: lazyRouteComponent(() => import('./usage-page'), 'UsagePage'),
});

export const usageRoutes = [usageRoute] as const;
