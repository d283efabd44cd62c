import { setTimeout as delay } from 'node:timers/promises';
import { now } from './caller.js';
import { ATTACKS } from './attacks.js';
import { type Fault, FAULTS, type Site } from './faults.js';
import type { FaultRecord } from './observations.js';
import type { Random } from './random.js';
import type { Driver } from './services.js';

/** How many faults may be under way at once: what one breaks must be mendable while the next begins. */
const AT_ONCE = 2;

/** Every fault: of what Baton runs on, and of what tenants send. */
const ALL = { ...FAULTS, ...ATTACKS };
export type FaultName = keyof typeof ALL;
export const FAULT_NAMES = Object.keys(ALL) as FaultName[];

/** Those that there are on a driver. */
export const faultsOn = (driver: Driver): FaultName[] =>
  FAULT_NAMES.filter((name) => (ALL[name] as Fault).drivers.includes(driver));

export interface PlannedFault {
  name: FaultName;
  /** When it begins, in ms after the first task. */
  at: number;
  random: Random;
}

/**
 * `count` faults at random times: each kind once before any comes again. Half of them begin while the one
 * before is still at work or its damage is being mended; before the others everything has had time to heal.
 * @param only these kinds, and no others
 * @param pauses in percent of the usual ones
 */
export function planFaults(
  seed: Random,
  count: number,
  driver: Driver,
  only: readonly FaultName[] = FAULT_NAMES,
  pauses = 100,
): PlannedFault[] {
  const random = seed.fork('faults');
  const names = faultsOn(driver).filter((name) => only.includes(name));
  if (names.length === 0) throw new Error(`The driver ${driver} has no fault ${only.join(', ')}.`);
  let at = 1500;
  let bag: FaultName[] = [];
  return Array.from({ length: count }, (_, n) => {
    if (bag.length === 0) bag = [...names];
    const [name] = bag.splice(random.integer(0, bag.length - 1), 1);
    const planned = { name: name!, at, random: seed.fork('fault', n) };
    const pause = random.chance(0.5) ? random.integer(500, 3000) : random.integer(4000, 10_000);
    at += (pause * pauses) / 100;
    return planned;
  });
}

/** Strike as planned. Resolves when the last fault is repaired. */
export async function strikeAll(
  plan: readonly PlannedFault[],
  site: Site,
  onFault: (fault: FaultRecord) => void,
): Promise<FaultRecord[]> {
  const start = now();
  const records: FaultRecord[] = [];
  const running = new Set<Promise<void>>();
  for (const { name, at, random } of plan) {
    await delay(Math.max(0, start + at - now()));
    while (running.size >= AT_ONCE) await Promise.race(running);
    const fault: Fault = ALL[name];
    const record: FaultRecord = { name, detail: '', from: now(), to: Infinity, excuses: fault.excuses };
    records.push(record);
    const striking = fault.strike(site, random).then((blow) => {
      Object.assign(record, { ...blow, to: now() });
      onFault(record);
      running.delete(striking);
    });
    running.add(striking);
  }
  await Promise.all(running);
  return records;
}
