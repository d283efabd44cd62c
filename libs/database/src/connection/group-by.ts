/** Items by a key, in their order. */
export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const others = groups.get(key);
    if (others) others.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** Items by their tenant. Sorted, so that two transactions for the same tenants lock rows in the same order. */
export const byTenant = <Item>(
  items: readonly Item[],
  tenantOf: (item: Item) => string,
): [tenantId: string, items: Item[]][] =>
  [...groupBy(items, tenantOf)].toSorted(([one], [other]) => (one < other ? -1 : 1));
