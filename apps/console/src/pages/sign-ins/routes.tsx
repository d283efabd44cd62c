import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const signInsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/sign-ins',
  component: lazyPage(() => import('./sign-ins-page'), 'SignInsPage'),
});

export const signInsRoutes = [signInsRoute] as const;
