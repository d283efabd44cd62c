import type { TenantSchemas } from '@baton/contract';

type Health = TenantSchemas['ListedWebhook']['health'];

/** Number of tasks with events that the receiver has not accepted. */
export const untaken = (health: Health): number => (health ? health.retrying + health.given_up : 0);

/** How the receiver does, in words. */
export function healthText(health: Health): string {
  if (!health) return 'nothing delivered yet';
  if (untaken(health) === 0) return 'ok';
  const { tasks, status, error } = health;
  const reason = error ?? (status === null ? undefined : `HTTP ${status}`);
  return `failing for ${untaken(health)} of ${tasks} tasks${reason === undefined ? '' : `: ${reason}`}`;
}
