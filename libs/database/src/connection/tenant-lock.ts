import type { Statement } from '../sql/statement.js';

/** Transactions of a tenant that begin with this statement run one after the other. $1 tenant */
export const tenantLock = (subject: string): Statement => ({
  name: `${subject}-lock`,
  text: `SELECT pg_advisory_xact_lock(hashtextextended('baton ${subject} ' || $1, 0))`,
});
