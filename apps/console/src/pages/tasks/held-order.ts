/** Rows in the order in which they stood, and how many of the list are not among them. */
export interface HeldOrder<T> {
  rows: T[];
  /** Entries that came above. */
  fresh: number;
}

/**
 * Keeps the rows of the list in place while the user reads it: what is new above is counted, not shown, and what is new below is
 * added. Each row has its newest content.
 * @param shown ids of the rows, in their order
 * @param entries the list as it is now, the newest first
 */
export function heldOrder<T>(
  shown: readonly string[],
  entries: readonly T[],
  idOf: (entry: T) => string,
): HeldOrder<T> {
  const byId = new Map(entries.map((entry) => [idOf(entry), entry]));
  const held = shown.filter((id) => byId.has(id));
  const known = new Set(held);
  const lowest = entries.findLastIndex((entry) => known.has(idOf(entry)));
  const isUnknown = (entry: T): boolean => !known.has(idOf(entry));
  const older = entries.slice(lowest + 1).filter(isUnknown);
  return {
    rows: [...held.flatMap((id) => byId.get(id) ?? []), ...older],
    fresh: entries.slice(0, lowest + 1).filter(isUnknown).length,
  };
}
