import type { FaultRecord, StruckRuns, TaskRecord } from './observations.js';

/** How long runs of struck workers were silent, in ms. */
export interface Recovery {
  runs: number;
  p50: number;
  p99: number;
  max: number;
}

/**
 * From the moment a worker was struck until each run that it had in hand spoke again, as its reader saw it.
 * Runs without a reader at the time are left out.
 * @param alone only blows during whose healing nothing else was broken
 */
export function recoveryOf(
  struck: readonly StruckRuns[],
  records: readonly TaskRecord[],
  faults: readonly FaultRecord[],
  alone: boolean,
): Recovery {
  const byId = new Map(records.map((record) => [record.taskId, record]));
  const silences = struck.flatMap(({ at, heads }) =>
    [...heads].flatMap(([taskId, head]) => {
      const silence = silenceOf(byId.get(taskId), at, head);
      if (silence === undefined) return [];
      return alone && isDisturbed(faults, at, at + silence) ? [] : [silence];
    }),
  );
  silences.sort((a, b) => a - b);
  const quantile = (q: number) => Math.round(silences[Math.ceil(silences.length * q) - 1] ?? 0);
  return { runs: silences.length, p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) };
}

/** Until the first later event that a reader got who was reading before. */
function silenceOf(record: TaskRecord | undefined, at: number, head: number): number | undefined {
  const arrivals = (record?.viewers ?? [])
    .filter(({ frames }) => frames[0] && frames[0].at < at)
    .flatMap(({ frames }) => frames.filter((frame) => frame.sequence > head && frame.at > at).slice(0, 1));
  const first = Math.min(...arrivals.map((frame) => frame.at));
  return Number.isFinite(first) ? first - at : undefined;
}

/** Whether another fault was at work, or had just been, between two moments. */
const isDisturbed = (faults: readonly FaultRecord[], from: number, to: number): boolean =>
  faults.filter((fault) => fault.from <= to && fault.to + 1000 >= from).length > 1;
