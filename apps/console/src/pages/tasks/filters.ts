import { STATES, type TaskState } from './task-words';

/** Which tasks the list shows. They are in the URL, so a list can be sent to somebody. */
export interface TaskFilters {
  state?: TaskState;
  agent?: string;
  owner?: string;
  context?: string;
  since?: string;
  /** Shorter ago than `since`. */
  until?: string;
  /** In the first message, or in the id of the task or context. The server searches. */
  text?: string;
}

const NAMES = ['agent', 'owner', 'context', 'since', 'until', 'text'] as const;

/** Reads the filters of a URL. What is no filter is left out. */
export function readFilters(search: Record<string, unknown>): TaskFilters {
  const filters: TaskFilters = {};
  const state = STATES.find((each) => each === search.state);
  if (state) filters.state = state;
  for (const name of NAMES) {
    const value = search[name];
    if ((typeof value === 'string' || typeof value === 'number') && value !== '')
      filters[name] = String(value);
  }
  if (filters.since !== undefined && !Object.hasOwn(SPANS, filters.since)) delete filters.since;
  if (!untilChoices(filters.since).some((choice) => choice === filters.until)) delete filters.until;
  return filters;
}

/** How far back each choice of `since` and `until` goes, in ms. */
export const SPANS: Readonly<Record<string, number>> = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
};

/** The choices of `until` that leave something of `since`. */
export const untilChoices = (since: string | undefined): string[] =>
  Object.keys(SPANS).filter((choice) => ago(choice) < ago(since));

/** A choice in ms. Unset: since ever. */
const ago = (choice: string | undefined): number =>
  (choice === undefined ? undefined : SPANS[choice]) ?? Infinity;

/** The query of `GET /v1/tasks`. @param now in ms */
export function queryOf({ state, agent, owner, context, since, until, text }: TaskFilters, now: number) {
  // By the minute, so that the same list is not read again for every millisecond.
  const time = (choice: string): string =>
    new Date(Math.floor((now - ago(choice)) / 60_000) * 60_000).toISOString();
  return {
    limit: 100,
    ...(state !== undefined && { state }),
    ...(agent !== undefined && { agent }),
    ...(owner !== undefined && { owner }),
    // A context belongs to an agent.
    ...(context !== undefined && agent !== undefined && { context_id: context }),
    ...(text !== undefined && { q: text }),
    ...(since !== undefined && { since: time(since) }),
    ...(until !== undefined && { until: time(until) }),
  };
}
