/** A tenant with runs that wait. */
export interface Claimant {
  tenantId: string;
  /** Share of the dispatch slots where tenants compete, above 0. */
  weight: number;
  /** Runs in flight: on the queue or running. */
  inFlight: number;
  /** Most runs that may be in flight; null = any number. */
  most: number | null;
}

/**
 * Shares free dispatch slots out: each goes to the tenant that would then have least for its weight. Over time this is
 * the weighted max-min share: no tenant gets more while another that wants some has less for its weight, and no slot
 * stays free while somebody may use it.
 *
 * @param random from 0 to below 1; says who is first among equals, so that no process always prefers the same ones
 * @returns slots by tenant, for those who get some
 */
export function shareOut(
  slots: number,
  claimants: readonly Claimant[],
  random: () => number = Math.random,
): Map<string, number> {
  const entries: Entry[] = claimants.map((claimant) => ({ claimant, got: 0, tie: random() }));
  const granted = new Map<string, number>();
  for (let left = slots; left > 0; left--) {
    const next = neediest(entries);
    if (!next) break;
    next.got += 1;
    next.tie = random();
    granted.set(next.claimant.tenantId, next.got);
  }
  return granted;
}

interface Entry {
  claimant: Claimant;
  got: number;
  tie: number;
}

/** What the tenant would have for its weight with one slot more; infinite if it may not have it. */
function burden({ claimant: { inFlight, most, weight }, got }: Entry): number {
  const next = inFlight + got + 1;
  return most !== null && next > most ? Infinity : next / weight;
}

function neediest(entries: readonly Entry[]): Entry | undefined {
  let best: Entry | undefined;
  let least = Infinity;
  for (const entry of entries) {
    const own = burden(entry);
    if (own === Infinity || own > least || (own === least && best && entry.tie >= best.tie)) continue;
    best = entry;
    least = own;
  }
  return best;
}
