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

const compareRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks/$id/compare',
  validateSearch: ({ with: other }): { with?: string } =>
    typeof other === 'string' && other !== '' ? { with: other } : {},
  component: lazyRouteComponent(() => import('./compare-page'), 'ComparePage'),
});

export const tasksRoutes = [tasksRoute, taskRoute, compareRoute] as const;
