import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const tokensRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tokens',
  component: lazyRouteComponent(() => import('./tokens-page'), 'TokensPage'),
});

export const tokensRoutes = [tokensRoute] as const;
