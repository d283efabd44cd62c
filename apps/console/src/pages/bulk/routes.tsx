import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';
import { type BulkSearch, readBulkSearch } from './bulk-search';

const bulkRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/bulk',
  validateSearch: (search: Record<string, unknown>): BulkSearch => readBulkSearch(search),
  component: lazyPage(() => import('./bulk-page'), 'BulkPage'),
});

export const bulkRoutes = [bulkRoute] as const;
