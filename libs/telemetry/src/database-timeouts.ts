import { counter, type Metrics } from './metrics.js';

const TIMEOUTS = counter(
  'baton_database_timeouts_total',
  'Statements that Postgres has not answered in time, which were canceled, and attempts to connect that were given up',
  ['what'],
  [{ what: 'statement' }, { what: 'connect' }],
);

/** Counts what Postgres has not answered in time. Every library with connections of its own calls it. */
export const countDatabaseTimeouts =
  (metrics: Metrics) =>
  (what: 'statement' | 'connect'): void =>
    metrics.get(TIMEOUTS).inc({ what });
