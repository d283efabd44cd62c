import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const schedulesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/schedules',
  component: lazyRouteComponent(() => import('./schedules-page'), 'SchedulesPage'),
});

export const schedulesRoutes = [schedulesRoute] as const;
