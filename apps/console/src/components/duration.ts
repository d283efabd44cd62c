const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const;

/** A duration for people: `350 ms`, `12 s`, `3 min`, `2 d`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [1, 's'];
  const value = seconds / size;
  return `${value < 10 ? value.toFixed(1).replace('.0', '') : Math.round(value)} ${unit}`;
}
