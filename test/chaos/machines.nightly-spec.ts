import { DRIVERS } from '../support/index.js';
import { SmallDisk } from '../support/small-disk.js';
import { MACHINE_FAULTS, type MachineOptions, renderMachine, runMachine } from './machine.js';
import { type PressureOptions, PRESSURES, renderPressure, runPressure } from './pressure.js';

// The short version of `npm run chaos -- --pressure` and `--machine`. Longer: CHAOS_SECONDS. The other driver: CHAOS_DRIVER=postgres.
const SECONDS = Number(process.env.CHAOS_SECONDS ?? 15);
const DRIVER = DRIVERS.find((driver) => driver === process.env.CHAOS_DRIVER) ?? DRIVERS[0]!;
const WORKERS = 3;
/** Tests of other files are at work beside this one. */
const LOOPS = 8;

/** Why there cannot be such a fault here. */
function obstacleTo(fault: MachineOptions['fault']): string | undefined {
  if (fault === 'eviction' && DRIVER !== 'redis') return 'there is no Redis';
  if (fault !== 'disk') return undefined;
  const disk = SmallDisk.mount('1m');
  if (typeof disk === 'string') return 'only root may mount a small disk';
  disk.unmount();
  return undefined;
}

const obstacles = MACHINE_FAULTS.flatMap((fault) => obstacleTo(fault) ?? []);
const leftOut = obstacles.length > 0 ? ` (left out: ${obstacles.join(', ')})` : '';

describe('an idle Baton', () => {
  it.each<PressureOptions['pressure']>([...PRESSURES])(
    'sends Postgres no pile of statements, and recovers by itself: %s',
    async (pressure) => {
      const options = { pressure, seconds: SECONDS, driver: DRIVER, workers: WORKERS, loops: LOOPS };
      const report = await runPressure(options);
      process.stdout.write(`${pressure}\n${renderPressure(report)}\n`);
      expect(report.faults).toEqual([]);
    },
  );
});

describe(`a Baton at work${leftOut}`, () => {
  it.each<MachineOptions['fault']>(MACHINE_FAULTS.filter((fault) => obstacleTo(fault) === undefined))(
    'loses no task, names the fault, and recovers by itself: %s',
    async (fault) => {
      const report = await runMachine({ fault, seconds: SECONDS, driver: DRIVER, workers: WORKERS });
      process.stdout.write(`${fault}\n${renderMachine(report)}\n`);
      expect(report.faults).toEqual([]);
      expect(report.tasks.accepted).toBeGreaterThan(0);
    },
  );
});
