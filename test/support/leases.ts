/**
 * Leases of tests that kill workers: their runs are requeued when these end (`Stack.killWorkers` ends them sooner). Also the worker
 * that lives must keep its leases. On a busy machine a process may get no CPU for ten seconds.
 */
export const CRASH_LEASES = { LEASE_MS: '15000', SWEEP_MS: '200' };
