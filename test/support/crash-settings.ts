/** Settings of tests that kill workers. */
export const CRASH_SETTINGS = {
  // The runs of a killed worker are requeued when its leases end (`Stack.killWorkers` ends them sooner). The worker that lives must
  // keep its own: on a busy machine a process may get no CPU for ten seconds.
  LEASE_MS: '15000',
  // A blocking send waits until the next worker has started.
  SEND_WAIT_MS: '600000',
};
