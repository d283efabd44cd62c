import type { CallerScope } from '../session/caller';
import type { IconName } from './icons';

/** An entry of the navigation. */
export interface NavigationEntry {
  label: string;
  icon: IconName;
  to: string;
  /** It is shown to callers with one of these scopes. Empty: to all. */
  scopes: readonly CallerScope[];
}

/** Entries below one title. */
export interface NavigationGroup<Entry = NavigationEntry> {
  /** Unset: the entries have no heading. */
  title?: string;
  entries: readonly Entry[];
}

/** The display of an entry. */
export type ShownEntry = Pick<NavigationEntry, 'label' | 'icon' | 'to'>;

/** The pages of operators, in the order of the navigation. An operator token may see all. */
export const OPERATOR_NAVIGATION: readonly NavigationGroup<ShownEntry>[] = [
  {
    entries: [
      { label: 'Workers', icon: 'worker', to: '/operators/workers' },
      { label: 'Queue', icon: 'queue', to: '/operators/queue' },
      { label: 'Tenants', icon: 'people', to: '/operators/tenants' },
      { label: 'Usage', icon: 'chart', to: '/operators/usage' },
      { label: 'Find a task', icon: 'find', to: '/operators/task' },
    ],
  },
];

/** The first page. */
export const HOME: NavigationEntry = {
  label: 'Home',
  icon: 'home',
  to: '/',
  scopes: ['tasks:read', 'agents:call'],
};

/** The pages of the console, in the order of the navigation. */
export const NAVIGATION: readonly NavigationGroup[] = [
  { entries: [HOME] },
  {
    title: 'Build',
    entries: [
      { label: 'Agents', icon: 'agent', to: '/agents', scopes: ['agents:read', 'agents:write'] },
      { label: 'Playground', icon: 'talk', to: '/playground', scopes: ['agents:call'] },
    ],
  },
  {
    title: 'Run',
    entries: [
      { label: 'Tasks', icon: 'tasks', to: '/tasks', scopes: ['tasks:read', 'agents:call'] },
      { label: 'Inbox', icon: 'inbox', to: '/inbox', scopes: ['agents:call'] },
      { label: 'Schedules', icon: 'clock', to: '/schedules', scopes: ['tasks:read', 'schedules:write'] },
      { label: 'Webhooks', icon: 'webhook', to: '/webhooks', scopes: ['admin'] },
      { label: 'Bulk operations', icon: 'bulk', to: '/bulk', scopes: ['agents:call'] },
      { label: 'Dead letters', icon: 'letter', to: '/dead-letters', scopes: ['tasks:read', 'agents:call'] },
    ],
  },
  {
    title: 'Settings',
    entries: [
      { label: 'Usage and limits', icon: 'chart', to: '/usage', scopes: ['tasks:read', 'agents:call'] },
      { label: 'Secrets', icon: 'key', to: '/secrets', scopes: ['secrets:write'] },
      { label: 'Sign-ins', icon: 'person', to: '/sign-ins', scopes: ['secrets:write'] },
      { label: 'Tokens', icon: 'token', to: '/tokens', scopes: ['admin'] },
      { label: 'Audit log', icon: 'audit', to: '/audit', scopes: ['audit:read'] },
    ],
  },
];
