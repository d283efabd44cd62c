import { eventsIn, firstOf } from './log-rows.js';

/** Events among which the state before is searched. If it is not there, the next one counts as another state. */
const MAX_EVENTS_BACK = 1_000;

/**
 * The state in an event that has one. It is found in the text, because Postgres' operators of JSON fail for texts with U+0000 or
 * half a surrogate pair. At most ids stand before the status.
 */
const STATE_OF_EVENT = String.raw`substring(e.payload::text
    FROM '^\{"(?:task|statusUpdate)":\{(?:"\w+":"(?:[^"\\]|\\.)*",)*"status":\{"state":"([A-Z_]+)"')`;

/**
 * SQL of the name of the state that a task had after an event. Null: it had none, or that was long ago.
 * @param event SQL of its task and its sequence
 */
export const stateBefore = (event: {
  tenant_id: string;
  task_id: string;
  sequence: string;
}): string => `coalesce((
  SELECT state FROM task_events r, ${eventsIn('r')}, LATERAL (SELECT ${STATE_OF_EVENT} AS state) s
  WHERE r.tenant_id = ${event.tenant_id} AND r.task_id = ${event.task_id} AND ${firstOf('r')} <= ${event.sequence}
    AND r.sequence > ${event.sequence} - ${MAX_EVENTS_BACK} AND (r.artifact = 0 OR r.first_sequence IS NOT NULL)
    AND ${firstOf('r')} + e.n - 1 <= ${event.sequence} AND s.state IS NOT NULL
  ORDER BY r.sequence DESC, e.n DESC LIMIT 1
), CASE WHEN ${event.sequence} BETWEEN 1 AND ${MAX_EVENTS_BACK} THEN 'TASK_STATE_SUBMITTED' END)`;
