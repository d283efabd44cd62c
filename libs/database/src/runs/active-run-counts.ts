/** The runs that have not ended. */
export interface ActiveRunCounts {
  /** Of all tenants, by state: `waiting` for a dispatch slot, `queued` for a worker, `running`, `suspended`. */
  states: Record<
    string,
    { runs: number; /** Since the oldest was accepted; 0 for suspended ones. */ oldestSeconds: number }
  >;
  /** Of the tenants that have the most, by slug. */
  tenants: { tenant: string; state: string; runs: number }[];
}
