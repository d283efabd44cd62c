import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { appRoute } from '../../shell/app-route';

const playgroundRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/playground',
  validateSearch: ({ agent }: Record<string, unknown>): { agent?: string } =>
    typeof agent === 'string' ? { agent } : {},
  component: lazyRouteComponent(() => import('./playground-page'), 'PlaygroundPage'),
});

export const playgroundRoutes = [playgroundRoute] as const;
