import type { TenantSchemas } from '@baton/contract';

type Usage = TenantSchemas['Usage']['usage'][number];
type ListedSchedule = TenantSchemas['ScheduleSummary'];

const DAY_MS = 86_400_000;

/** The tasks of one day. */
export interface DayOfTasks {
  /** Such as 2026-01-31, in UTC. */
  day: string;
  tasks: number;
  failed: number;
}

/** The last days including today, the oldest first. Days without tasks have zeros. @param days how many @param now in ms since 1970 */
export function lastDays(usage: readonly Usage[], days: number, now: number): DayOfTasks[] {
  const byDay = new Map(usage.map((each) => [each.key, each]));
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(now - (days - 1 - index) * DAY_MS).toISOString().slice(0, 10);
    const { tasks = 0, failed = 0 } = byDay.get(day) ?? {};
    return { day, tasks, failed };
  });
}

/** Agents with failed tasks, the largest share of failures first. @param usage by agent */
export const failingAgents = (usage: readonly Usage[]): Usage[] =>
  usage
    .filter(({ failed }) => failed > 0)
    .toSorted((a, b) => b.failed / b.tasks - a.failed / a.tasks || b.failed - a.failed);

/** Why a schedule needs the user's attention. Undefined: it has no trouble. */
export function troubleOf({
  paused_reason: paused,
  last_outcome: last,
  recent_tasks: tasks,
}: Pick<ListedSchedule, 'paused_reason' | 'last_outcome' | 'recent_tasks'>): string | undefined {
  if (paused !== null) return `paused by Baton: ${paused}`;
  if (last?.outcome === 'refused' || last?.outcome === 'missed')
    return `the last time was ${last.outcome}${last.reason === null ? '' : `: ${last.reason}`}`;
  const failed = tasks.filter(({ state }) => state === 'failed' || state === 'rejected').length;
  return failed === 0 ? undefined : `${failed} of the last ${tasks.length} tasks failed`;
}
