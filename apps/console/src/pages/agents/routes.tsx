import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../../components/lazy-page';
import { appRoute } from '../../shell/app-route';

const agentsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/agents',
  component: lazyPage(() => import('./agents-page'), 'AgentsPage'),
});

const newAgentRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/agents/new',
  component: lazyPage(() => import('./agent-editor'), 'NewAgentPage'),
});

const TABS = ['definition', 'card', 'use', 'versions'] as const;
type AgentTab = (typeof TABS)[number];

const agentRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/agents/$agent',
  validateSearch: ({ tab }: Record<string, unknown>): { tab?: AgentTab } => {
    const found = TABS.find((known) => known === tab);
    return found ? { tab: found } : {};
  },
  component: lazyPage(() => import('./agent-page'), 'AgentPage'),
});

const editAgentRoute = createRoute({
  getParentRoute: () => appRoute,
  path: '/agents/$agent/edit',
  component: lazyPage(() => import('./agent-editor'), 'EditAgentPage'),
});

export const agentsRoutes = [agentsRoute, newAgentRoute, agentRoute, editAgentRoute] as const;
