// Load patterns. Each returns the figures of one round.

/** `count` calls one after another; milliseconds of each, sorted. */
export async function oneByOne(call, count) {
  const times = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b);
}

/** `clients` callers at once for `seconds`; how much they got done a second (the sum of what `call` returns). */
export async function together(call, clients, seconds) {
  const start = performance.now();
  const end = start + seconds * 1000;
  let done = 0;
  const client = async () => {
    while (performance.now() < end) {
      // Not `done += await …`: that would read `done` before the call and lose what others added meanwhile.
      const count = await call();
      done += count ?? 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return done / ((performance.now() - start) / 1000);
}

/** `count` calls at once; what each returns, sorted. */
export async function burst(call, count) {
  return (await Promise.all(Array.from({ length: count }, call))).sort((a, b) => a - b);
}

/** Value below which the share `q` of the sorted numbers lies. */
export const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];

/** Minimum, median and maximum of some rounds. */
export function range(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { min: sorted[0], median: quantile(sorted, 0.5), max: sorted.at(-1) };
}
