import { STATES, type TaskState } from '../../a2a/task-states';

/** Which tasks the list shows. They are in the URL, so the link of a list can be shared. */
export interface TaskFilters {
  state?: TaskState;
  agent?: string;
  owner?: string;
  context?: string;
  since?: string;
  /** Shorter ago than `since`. */
  until?: string;
  /** In the first message, the status, the error or the answer, or in the id of the task or context. The server searches. */
  text?: string;
  /** Only tasks that wait for other code of their agent. */
  parked?: 'true';
}

const NAMES = ['agent', 'owner', 'context', 'since', 'until', 'text'] as const;

/** Reads the filters of a URL. Other keys are left out. */
export function readFilters(search: Record<string, unknown>): TaskFilters {
  const filters: TaskFilters = {};
  if (String(search.parked) === 'true') filters.parked = 'true';
  const state = STATES.find((each) => each === stateNameOf(search.state));
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

/** A state as the console names it: A2A writes `TASK_STATE_INPUT_REQUIRED` for `input-required`. */
const stateNameOf = (value: unknown): unknown =>
  typeof value === 'string'
    ? value
        .toLowerCase()
        .replace(/^task_state_/, '')
        .replaceAll('_', '-')
    : value;

/** The choices of a URL that `readFilters` leaves out because there is no such choice: their names and values. */
export function unknownFilters(search: Record<string, unknown>): [string, string][] {
  const read = readFilters(search);
  return (['state', 'since', 'until'] as const).flatMap((name): [string, string][] => {
    const value = search[name];
    const isText = typeof value === 'string' || typeof value === 'number';
    // A filter that another choice excludes is not a mistake.
    const isKnown = read[name] !== undefined || (name === 'until' && Object.hasOwn(SPANS, String(value)));
    return isText && value !== '' && !isKnown ? [[name, String(value).slice(0, 50)]] : [];
  });
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
export function queryOf(
  { state, agent, owner, context, since, until, text, parked }: TaskFilters,
  now: number,
) {
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
    ...(parked !== undefined && { parked: true }),
    ...(since !== undefined && { since: time(since) }),
    ...(until !== undefined && { until: time(until) }),
  };
}
