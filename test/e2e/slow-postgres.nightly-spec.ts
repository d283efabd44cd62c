import { existsSync } from 'node:fs';
import { runPressure } from '../chaos/pressure.js';
import { DRIVERS } from '../support/index.js';
import { findPgBouncer } from '../support/pgbouncer.js';

/** Processes of Postgres are found there. */
const canSee = existsSync('/proc/self/stat');

const hasPooler = findPgBouncer() !== undefined;
const without = hasPooler ? '' : ' (left out: there is no pgbouncer)';
/** Whether Baton reaches Postgres through PgBouncer. */
const WAYS = hasPooler ? [false, true] : [false];

/** The short form of `npm run chaos -- --pressure …`, without endless loops, which say nothing on a fast machine. */
(canSee ? describe : describe.skip)('An idle Baton whose Postgres does not answer for a while', () => {
  // Two at a time: nearly all of the time is spent waiting.
  it('has each piece of periodic work there once, and recovers, on each driver', async () => {
    const reports = await Promise.all(
      DRIVERS.map((driver) => runPressure({ pressure: 'locks', seconds: 8, driver, workers: 2 })),
    );
    expect(reports.map(({ faults }) => faults)).toEqual(DRIVERS.map(() => []));
  });

  it(`opens no more sessions than it may while those that it has given up last, and does not fill a pooler${without}`, async () => {
    const reports = await Promise.all(
      // Longer than Baton waits for an answer.
      WAYS.map((pooler) =>
        runPressure({ pressure: 'freeze', seconds: 24, driver: 'postgres', workers: 2, pooler }),
      ),
    );
    expect(reports.map(({ faults }) => faults)).toEqual(WAYS.map(() => []));
  });
});
