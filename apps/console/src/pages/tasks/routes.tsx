import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';
import { readFilters } from './filters';
import { readTab, type TaskTab } from './task-tabs';
import { TasksPage } from './tasks-page';
import { readTraceSearch, type TraceSearch } from './trace-search';
import { tasksQuery } from './tasks-query';

// Most people see this page first: it is in the first file, and its list is asked for while the caller is.
const tasksRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks',
  validateSearch: readFilters,
  loader: ({ context, location }) =>
    void context.queryClient.prefetchInfiniteQuery(
      tasksQuery(readFilters(location.search), location.state.__TSR_key ?? ''),
    ),
  component: TasksPage,
});

const taskRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks/$id',
  validateSearch: (search): { tab?: TaskTab } & TraceSearch => {
    const known = readTab(search.tab);
    return { ...(known && { tab: known }), ...readTraceSearch(search) };
  },
  component: lazyPage(() => import('./task-page'), 'TaskPage'),
});

const compareRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tasks/$id/compare',
  validateSearch: ({ with: other }): { with?: string } =>
    typeof other === 'string' && other !== '' ? { with: other } : {},
  component: lazyPage(() => import('./compare-page'), 'ComparePage'),
});

export const tasksRoutes = [tasksRoute, taskRoute, compareRoute] as const;
