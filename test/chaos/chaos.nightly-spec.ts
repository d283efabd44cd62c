import { DRIVERS } from '../support/index.js';
import { runChaos } from './chaos.js';
import { FAULT_NAMES, type FaultName, faultsOn } from './fault-plan.js';
import { type Report, renderReport, reportOn } from './report.js';

// The short version of `npm run chaos`. A seed of your own: CHAOS_SEED.
const SEED = process.env.CHAOS_SEED ?? 'baton-9';

const TASKS = 80;

/** Each once: those that both drivers have are shared out between them. */
type Driver = (typeof DRIVERS)[number];

function share(driver: Driver): FaultName[] {
  const place = DRIVERS.indexOf(driver);
  const isShared = (name: FaultName) => DRIVERS.every((each) => faultsOn(each).includes(name));
  const shared = FAULT_NAMES.filter(isShared).filter((_, n) => n % DRIVERS.length === place);
  return [...FAULT_NAMES.filter((name) => faultsOn(driver).includes(name) && !isShared(name)), ...shared];
}

async function strike(driver: Driver): Promise<Report> {
  const only = share(driver);
  const size = { tasks: TASKS, tenants: 3, apis: 2, workers: 2, atOnce: 24, patience: 300 };
  // Attacks last long, and what is to heal alone does so in less than the usual pauses.
  const options = {
    ...size,
    pauses: 50,
    // Each deploy replaces all workers.
    code: 12,
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
      FAULT_NAMES.filter((name) => DRIVERS.some((d) => faultsOn(d).includes(name))).sort(),
    );
  });
});
