import type { CallerScope } from '../session/caller';

/** An entry of the navigation. */
export interface NavigationEntry {
  label: string;
  to: string;
  /** It is shown to callers with one of these scopes. Empty: to everybody. */
  scopes: readonly CallerScope[];
}

/** Entries below one title. */
export interface NavigationGroup<Entry = NavigationEntry> {
  /** Unset: the entries stand alone. */
  title?: string;
  entries: readonly Entry[];
}

/** What is shown of an entry. */
export type ShownEntry = Pick<NavigationEntry, 'label' | 'to'>;

/** The pages of operators, in the order of the navigation. An operator token may see all. */
export const OPERATOR_NAVIGATION: readonly NavigationGroup<ShownEntry>[] = [
  {
    entries: [
      { label: 'Workers', to: '/operators/workers' },
      { label: 'Queue', to: '/operators/queue' },
      { label: 'Tenants', to: '/operators/tenants' },
      { label: 'Usage', to: '/operators/usage' },
      { label: 'Find a task', to: '/operators/task' },
    ],
  },
];

/** The first page. */
export const HOME: NavigationEntry = { label: 'Home', to: '/', scopes: ['tasks:read', 'agents:call'] };

/** The pages of the console, in the order of the navigation. */
export const NAVIGATION: readonly NavigationGroup[] = [
  { entries: [HOME] },
  {
    title: 'Build',
    entries: [
      { label: 'Agents', to: '/agents', scopes: ['agents:read', 'agents:write'] },
      { label: 'Playground', to: '/playground', scopes: ['agents:call'] },
    ],
  },
  {
    title: 'Run',
    entries: [
      { label: 'Tasks', to: '/tasks', scopes: ['tasks:read', 'agents:call'] },
      { label: 'Inbox', to: '/inbox', scopes: ['agents:call'] },
      { label: 'Schedules', to: '/schedules', scopes: ['tasks:read', 'schedules:write'] },
      { label: 'Webhooks', to: '/webhooks', scopes: ['admin'] },
      { label: 'Bulk operations', to: '/bulk', scopes: ['agents:call'] },
      { label: 'Dead letters', to: '/dead-letters', scopes: ['tasks:read', 'agents:call'] },
    ],
  },
  {
    title: 'Settings',
    entries: [
      { label: 'Usage and limits', to: '/usage', scopes: ['tasks:read', 'agents:call'] },
      { label: 'Secrets', to: '/secrets', scopes: ['secrets:write'] },
      { label: 'Sign-ins', to: '/sign-ins', scopes: ['secrets:write'] },
      { label: 'Tokens', to: '/tokens', scopes: ['admin'] },
      { label: 'Audit log', to: '/audit', scopes: ['audit:read'] },
    ],
  },
];
