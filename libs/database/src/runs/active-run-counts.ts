/** The runs that have not ended. */
export interface ActiveRunCounts {
  /** Runs of all tenants, by state: `waiting` for a dispatch slot, `queued` for a worker, `running`, `suspended`. */
  states: Record<
    string,
    { runs: number; /** Since the oldest was accepted; 0 for suspended ones. */ oldestSeconds: number }
  >;
  /** The tenants with the most runs, by slug. */
  tenants: { tenant: string; state: string; runs: number }[];
}
