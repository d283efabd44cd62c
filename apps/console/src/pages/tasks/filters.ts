import { STATES, type TaskState } from './task-words';

/** Which tasks the list shows. They are in the URL, so a list can be sent to somebody. */
export interface TaskFilters {
  state?: TaskState;
  agent?: string;
  owner?: string;
  context?: string;
  since?: string;
  /** In the first message, or in the id of the task or context. The server searches. */
  text?: string;
}

const NAMES = ['agent', 'owner', 'context', 'since', 'text'] as const;

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
  return filters;
}

/** How far back each choice of `since` goes, in ms. */
export const SINCE: Readonly<Record<string, number>> = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
};

/** The query of `GET /v1/requests`. @param now in ms */
export function queryOf({ state, agent, owner, context, since, text }: TaskFilters, now: number) {
  const span = since === undefined ? undefined : SINCE[since];
  return {
    limit: 100,
    ...(state !== undefined && { state }),
    ...(agent !== undefined && { agent }),
    ...(owner !== undefined && { owner }),
    // A context belongs to an agent.
    ...(context !== undefined && agent !== undefined && { context_id: context }),
    ...(text !== undefined && { q: text }),
    // By the minute, so that the same list is not read again for every millisecond.
    ...(span !== undefined && { since: new Date(Math.floor((now - span) / 60_000) * 60_000).toISOString() }),
  };
}
