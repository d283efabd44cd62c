import { isUuid, LoggedEvent, type TaskEvent } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { EVENT_TIMES, eventJson, type EventRow, type PageRow, READ_EVENTS, READ_PAGE } from './log-rows.js';

/** Largest `integer` of Postgres. */
const MAX_INT = 2_147_483_647;

/** For a task that was deleted meanwhile: none. */
const loggedEvents = (rows: readonly EventRow[], taskId: string): LoggedEvent[] =>
  rows.flatMap((row) => {
    const json = eventJson(row, taskId);
    return json === undefined ? [] : [new LoggedEvent(row.sequence, row.attempt, json)];
  });

/** Events after `after`, in order, at most `limit`. */
export async function readEvents(
  database: Database,
  tenantId: string,
  taskId: string,
  after: number,
  limit: number,
): Promise<TaskEvent[]> {
  if (!isUuid(taskId)) return [];
  const values = [tenantId, taskId, Math.min(after, MAX_INT), Math.min(limit, MAX_INT)];
  const rows = await database.tenantQuery<EventRow>(tenantId, READ_EVENTS, values);
  return loggedEvents(rows, taskId).map(({ sequence, attempt, payload }) => ({ sequence, attempt, payload }));
}

/** When the events after `after` were stored, in order, at most `limit`. */
export async function eventTimes(
  database: Database,
  tenantId: string,
  taskId: string,
  after: number,
  limit: number,
): Promise<{ sequence: number; at: Date }[]> {
  if (!isUuid(taskId)) return [];
  const values = [tenantId, taskId, Math.min(after, MAX_INT), limit];
  return database.tenantQuery<{ sequence: number; at: Date }>(tenantId, EVENT_TIMES, values);
}

/**
 * The next events after `after`, in order: no more after `limit` of them or `bytes` of JSON. `more`: whether there may be
 * events after them.
 */
export async function readPage(
  database: Database,
  { tenantId, taskId }: { tenantId: string; taskId: string },
  after: number,
  { limit, bytes }: { limit: number; bytes: number },
): Promise<{ events: LoggedEvent[]; more: boolean }> {
  if (!isUuid(taskId)) return { events: [], more: false };
  const values = [tenantId, taskId, Math.min(after, MAX_INT), limit, bytes];
  const rows = await database.tenantQuery<PageRow>(tenantId, READ_PAGE, values);
  const read = rows.at(-1);
  const more = read !== undefined && (read.number >= limit || read.bytes >= bytes);
  return { events: loggedEvents(rows, taskId), more };
}
