import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const webhooksRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/webhooks',
  component: lazyPage(() => import('./webhooks-page'), 'WebhooksPage'),
});

const deliveriesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/webhooks/$id',
  component: lazyPage(() => import('./deliveries-page'), 'DeliveriesPage'),
});

export const webhooksRoutes = [webhooksRoute, deliveriesRoute] as const;
