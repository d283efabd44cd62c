import { DRIVERS } from '../support/index.js';
import { runChaos } from './chaos.js';
import { renderReport, reportOn } from './report.js';

// The short version of `npm run chaos`. A seed of your own: CHAOS_SEED.
const SEED = process.env.CHAOS_SEED ?? 'baton-9';

describe('under faults', () => {
  it('no task is dropped, and every stream is whole', async () => {
    const [driver] = DRIVERS;
    const size = { tasks: 150, faults: 8, tenants: 3, apis: 2, workers: 2, atOnce: 32, patience: 90 };
    const options = { ...size, seed: SEED, driver: driver!, logs: process.env.TEST_LOGS };
    const report = reportOn(options, await runChaos(options, () => undefined));
    process.stdout.write(`${renderReport(report)}\n`);
    expect(report.findings).toEqual([]);
    expect(report).toMatchObject({ faults: 8, passed: true });
    expect(report.tasks).toBeGreaterThanOrEqual(150);
  }, 300_000);
});
