import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';
import { readFilters } from './filters';

const tasksRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks',
  validateSearch: readFilters,
  component: lazyRouteComponent(() => import('./tasks-page'), 'TasksPage'),
});

const taskRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks/$id',
  component: lazyRouteComponent(() => import('./task-page'), 'TaskPage'),
});

export const tasksRoutes = [tasksRoute, taskRoute] as const;
