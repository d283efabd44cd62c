// SQL about one row of `runs` that several operations use. The alias of the row is `r` unless a function has a parameter for it.

/** A run in flight. The condition must contain the predicate of the index word by word. */
export const IN_FLIGHT = `(state = 'running' OR (state = 'queued' AND enqueued_at IS NOT NULL))`;
/** A waiting run: it has no slot yet. */
export const WAITING = `state = 'queued' AND enqueued_at IS NULL`;
/** A suspended run whose time has come, at `clock`. */
export const isSleepOver = (clock: string): string => `(state = 'suspended' AND not_before <= ${clock})`;
/** A run that waits for other tasks. A run that sleeps or is parked waits for its own task. The index has the same words. */
export const WAITS_FOR_TASKS = `state = 'suspended' AND waits_for <> ARRAY[task_id]`;
/** A waiting run in backoff is not ready before `not_before`. */
export const DUE = `(not_before IS NULL OR not_before <= clock_timestamp())`;

/** Number of a tenant's runs of that kind. Counts up to `max`. */
export const countUpTo = (kind: string, tenant: string, max: string): string =>
  `(SELECT count(*) FROM (SELECT FROM runs WHERE tenant_id = ${tenant} AND ${kind} LIMIT ${max}) n)`;

/**
 * Whether a run `r` that goes back on the queue may use a reserved slot: no more than `reserveUpTo` of its tenant are then in flight
 * (see `RunQuota`).
 */
export const mayUseReserved = (reserveUpTo: string): string =>
  `(SELECT count(*) FROM (SELECT FROM runs o WHERE o.tenant_id = r.tenant_id AND o.id <> r.id AND ${IN_FLIGHT} LIMIT ${reserveUpTo}) n) < ${reserveUpTo}`;

/**
 * SQL: whether a run `r` is of a task. The first run of a task has the id of the task; an index has the others, and the
 * first ones of release 0.1.0.
 */
export const isRunOf = (r: string, tenant: string, task: string): string =>
  `(${r}.tenant_id = ${tenant} AND (${r}.id = ${task} OR ${r}.task_id = ${task} AND ${r}.id <> ${r}.task_id))`;

/**
 * SQL of the condition that the run `r`, found by its key, has one of these states. It is a CASE, so that Postgres does not read all
 * active runs of the tenant: their index has few entries, and its estimate is low.
 */
export const hasState = (...states: ('queued' | 'running' | 'suspended')[]): string =>
  `CASE WHEN r.state IN (${states.map((state) => `'${state}'`).join(', ')}) THEN true ELSE false END`;
