import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const inboxRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/inbox',
  component: lazyPage(() => import('./inbox-page'), 'InboxPage'),
});

export const inboxRoutes = [inboxRoute] as const;
