import { driversOf, NIGHTLY } from '../support/nightly.js';
import { ATTACKS } from './attacks.js';
import { runChaos } from './chaos.js';
import { FAULT_NAMES, type FaultName, faultsOn } from './fault-plan.js';
import { type Report, renderReport, reportOn } from './report.js';

// The short version of `npm run chaos`, longer at night. A seed of your own: CHAOS_SEED.
const SEED = process.env.CHAOS_SEED ?? 'baton-9';

/**
 * Every kind of fault, and at night also every attack of a tenant. By day other tests attack the same
 * limits without other faults: hostile-content, hostile-bodies, large-turns, executors, fuzz.
 */
const NAMES = FAULT_NAMES.filter((name) => NIGHTLY || !(name in ATTACKS));
const TASKS = NIGHTLY ? 80 : 40;
/** Redis can break in more ways than Postgres alone. */
const DRIVERS = driversOf('redis');

/** Each once: those that both drivers have are shared out between them. */
type Driver = (typeof DRIVERS)[number];

function share(driver: Driver): FaultName[] {
  const place = DRIVERS.indexOf(driver);
  const isShared = (name: FaultName) => DRIVERS.every((each) => faultsOn(each).includes(name));
  const shared = NAMES.filter(isShared).filter((_, n) => n % DRIVERS.length === place);
  return [...NAMES.filter((name) => faultsOn(driver).includes(name) && !isShared(name)), ...shared];
}

async function strike(driver: Driver): Promise<Report> {
  const only = share(driver);
  const size = { tasks: TASKS, tenants: 3, apis: 2, workers: 2, atOnce: 24, patience: 300 };
  // Attacks last long, and what is to heal alone does so in less than the usual pauses.
  const options = {
    ...size,
    pauses: 50,
    // Each deploy replaces all workers.
    code: NIGHTLY ? 12 : 0,
    faults: only.length,
    only,
    seed: SEED,
    driver,
    logs: process.env.TEST_LOGS,
  };
  const report = reportOn(options, await runChaos(options, () => undefined));
  process.stdout.write(`${renderReport(report)}\n`);
  return report;
}

describe('under faults', () => {
  it('of every kind, no task is dropped, and every stream is whole', async () => {
    // Both at once: most of the time is spent waiting for what was broken to heal.
    const reports = await Promise.all(DRIVERS.map(strike));
    for (const report of reports) {
      expect(report.findings).toEqual([]);
      expect(report).toMatchObject({ passed: true });
      expect(report.tasks).toBeGreaterThanOrEqual(TASKS);
    }
    const struck = reports.flatMap(({ faultsByKind }) => Object.keys(faultsByKind));
    expect(struck.sort()).toEqual(
      NAMES.filter((name) => DRIVERS.some((d) => faultsOn(d).includes(name))).sort(),
    );
  });
});
