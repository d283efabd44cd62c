import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const tasksRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks',
  component: lazyRouteComponent(() => import('./tasks-page'), 'TasksPage'),
});

export const tasksRoutes = [tasksRoute] as const;
