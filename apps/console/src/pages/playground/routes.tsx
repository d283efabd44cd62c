import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const playgroundRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/playground',
  validateSearch: ({ agent }: Record<string, unknown>): { agent?: string } =>
    typeof agent === 'string' ? { agent } : {},
  component: lazyPage(() => import('./playground-page'), 'PlaygroundPage'),
});

export const playgroundRoutes = [playgroundRoute] as const;
