import { existsSync } from 'node:fs';
import { runPressure } from '../chaos/pressure.js';
import { DRIVERS } from '../support/redis.js';
import { findPgBouncer } from '../support/pgbouncer.js';

/** Processes of Postgres are found there. */
const canSee = existsSync('/proc/self/stat');

/** The short form of `npm run chaos -- --pressure …`, without endless loops, which say nothing on a fast machine. */
(canSee ? describe : describe.skip)('An idle Baton whose Postgres does not answer for a while', () => {
  it.each(DRIVERS)('has each piece of periodic work there once, and recovers (%s)', async (driver) => {
    const { faults } = await runPressure({ pressure: 'locks', seconds: 8, driver, workers: 2 });
    expect(faults).toEqual([]);
  });

  it('opens no more sessions than it may while those that it has given up last', async () => {
    // Longer than Baton waits for an answer.
    const { faults } = await runPressure({ pressure: 'freeze', seconds: 24, driver: 'postgres', workers: 2 });
    expect(faults).toEqual([]);
  });

  (findPgBouncer() ? it : it.skip)('does not fill a pooler', async () => {
    const { faults } = await runPressure({
      pressure: 'freeze',
      seconds: 24,
      driver: 'postgres',
      workers: 2,
      pooler: true,
    });
    expect(faults).toEqual([]);
  });
});
