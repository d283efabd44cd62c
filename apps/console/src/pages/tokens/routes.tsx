import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const tokensRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/tokens',
  component: lazyPage(() => import('./tokens-page'), 'TokensPage'),
});

export const tokensRoutes = [tokensRoute] as const;
