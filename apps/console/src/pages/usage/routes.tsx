import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';
import { readUsageView, type UsageView } from './usage-view';

const usageRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/usage',
  validateSearch: (search): UsageView => readUsageView(search),
  component: lazyRouteComponent(() => import('./usage-page'), 'UsagePage'),
});

export const usageRoutes = [usageRoute] as const;
