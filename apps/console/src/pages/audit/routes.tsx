import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const auditRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/audit',
  component: lazyPage(() => import('./audit-page'), 'AuditPage'),
});

export const auditRoutes = [auditRoute] as const;
