/** Settings that lift the default limits of tenants: a benchmark measures Baton, not its limits. */
export const NO_LIMITS = Object.fromEntries(
  [
    'REQUESTS_PER_SECOND',
    'TASKS_WAITING',
    'OPEN_STREAMS',
    'STORED_BYTES',
    'TOKENS_PER_DAY',
    'GUEST_REQUESTS_PER_SECOND',
    'GUEST_MESSAGES_PER_DAY',
    'RETENTION_DAYS',
  ].map((name) => [`LIMIT_${name}`, 'none']),
);
