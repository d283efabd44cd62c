import type { TenantSchemas } from '@baton/contract';

export type Key = TenantSchemas['Usage']['by'];

/** The groupings of usage. */
export const KEYS: Readonly<Record<Key, string>> = {
  day: 'Day (UTC)',
  agent: 'Agent',
  token: 'Token',
  owner: 'Owner',
  model: 'Model',
};

/** The periods that can be chosen, by their days. */
export const PERIODS: ReadonlyMap<number, string> = new Map([
  [1, 'Last 24 hours'],
  [7, 'Last 7 days'],
  [30, 'Last 30 days'],
  [365, 'Last year'],
]);

/** The choices of the page. They are in the URL, so the link can be shared. */
export interface UsageView {
  by?: Key;
  days?: number;
}

/** Reads the choices of a URL. Other values are left out. */
export function readUsageView({ by, days }: Record<string, unknown>): UsageView {
  const key = (Object.keys(KEYS) as Key[]).find((each) => each === by);
  return { ...(key && { by: key }), ...(typeof days === 'number' && PERIODS.has(days) && { days }) };
}
