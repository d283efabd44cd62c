/** A tenant with runs that wait. */
export interface Claimant {
  tenantId: string;
  /** Share of the places where tenants compete, above 0. */
  weight: number;
  /** Runs that are out: on the queue or running. */
  out: number;
  /** Most runs that may be out; null = any number. */
  most: number | null;
}

/**
 * Shares free places out: each goes to the tenant that would then have least for its weight. Over time this is the
 * weighted max-min share: no tenant gets more while another that wants some has less for its weight, and no place
 * stays free while somebody may use it.
 *
 * @param random from 0 to below 1; says who is first among equals, so that no process always prefers the same ones
 * @returns places by tenant, for those who get some
 */
export function shareOut(
  places: number,
  claimants: readonly Claimant[],
  random: () => number = Math.random,
): Map<string, number> {
  const entries: Entry[] = claimants.map((claimant) => ({ claimant, got: 0, tie: random() }));
  const granted = new Map<string, number>();
  for (let left = places; left > 0; left--) {
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

/** What the tenant would have for its weight with one place more; infinite if it may not have it. */
function burden({ claimant: { out, most, weight }, got }: Entry): number {
  const next = out + got + 1;
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
