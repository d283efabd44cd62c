import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const schedulesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/schedules',
  component: lazyPage(() => import('./schedules-page'), 'SchedulesPage'),
});

export const schedulesRoutes = [schedulesRoute] as const;
