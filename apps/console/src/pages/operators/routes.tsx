import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { operatorRoute } from '../../shell/app-route';

const workersRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: '/operators/workers',
  component: lazyPage(() => import('./workers-page'), 'WorkersPage'),
});

const queueRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: '/operators/queue',
  component: lazyPage(() => import('./queue-page'), 'QueuePage'),
});

const tenantsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: '/operators/tenants',
  component: lazyPage(() => import('./tenants-page'), 'TenantsPage'),
});

const usageRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: '/operators/usage',
  component: lazyPage(() => import('./usage-page'), 'OperatorUsagePage'),
});

const tenantRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: '/operators/tenants/$tenant',
  component: lazyPage(() => import('./tenant-page'), 'TenantPage'),
});

/** A search parameter as text. The router parses numbers and words such as `true`. */
const textOf = (value: unknown): string | undefined =>
  value === undefined || value === '' ? undefined : String(value as string | number | boolean);

const taskRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: '/operators/task',
  validateSearch: ({ tenant, id }: Record<string, unknown>): { tenant?: string; id?: string } => ({
    tenant: textOf(tenant),
    id: textOf(id),
  }),
  component: lazyPage(() => import('./task-page'), 'OperatorTaskPage'),
});

export const operatorsRoutes = [
  workersRoute,
  queueRoute,
  tenantsRoute,
  usageRoute,
  tenantRoute,
  taskRoute,
] as const;
