/** A tenant with runs that wait. */
export interface Claimant {
  tenantId: string;
  /** Share of the dispatch slots when tenants compete, above 0. */
  weight: number;
  /** Runs in flight: on the queue or running. */
  inFlight: number;
  /** Maximum number of runs in flight; null = any number. */
  maxInFlight: number | null;
}

/**
 * Shares free dispatch slots: each goes to the tenant that would then have the fewest for its weight. Over time this is weighted max-min
 * fairness. A tenant gets more for its weight than another one only if the other one has no more runs. No slot stays free while a waiting run
 * may use it. Chance decides among equal tenants, so that no process always prefers the same one.
 *
 * @returns slots by tenant, for those who get some
 */
export function shareOut(slots: number, claimants: readonly Claimant[]): Map<string, number> {
  const entries: Candidate[] = claimants.map((claimant) => ({ claimant, got: 0, tie: Math.random() }));
  const granted = new Map<string, number>();
  for (let left = slots; left > 0; left--) {
    const next = neediest(entries);
    if (!next) break;
    next.got += 1;
    next.tie = Math.random();
    granted.set(next.claimant.tenantId, next.got);
  }
  return granted;
}

interface Candidate {
  claimant: Claimant;
  got: number;
  tie: number;
}

/** The tenant's slots per weight with one more slot. Infinity if it may not have one more. */
function burden({ claimant: { inFlight, maxInFlight, weight }, got }: Candidate): number {
  const next = inFlight + got + 1;
  return maxInFlight !== null && next > maxInFlight ? Infinity : next / weight;
}

function neediest(entries: readonly Candidate[]): Candidate | undefined {
  let best: Candidate | undefined;
  let least = Infinity;
  for (const entry of entries) {
    const own = burden(entry);
    if (own === Infinity || own > least || (own === least && best && entry.tie >= best.tie)) continue;
    best = entry;
    least = own;
  }
  return best;
}
