import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';
import { readUsageView, type UsageView } from './usage-view';

const usageRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/usage',
  validateSearch: (search): UsageView => readUsageView(search),
  component: lazyPage(() => import('./usage-page'), 'UsagePage'),
});

export const usageRoutes = [usageRoute] as const;
