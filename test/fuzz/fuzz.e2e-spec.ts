import { DRIVERS } from '../support/index.js';
import { Stack } from '../support/stack.js';
import { renderReport, runFuzz } from './fuzz.js';

// The short version of `npm run fuzz`. A seed of your own: FUZZ_SEED.
const SEED = Number(process.env.FUZZ_SEED ?? 20261121);
const CASES = Number(process.env.FUZZ_CASES ?? 2_000);

describe('whatever is sent', () => {
  it('is answered, in good form and without a word too many, by processes that live on', async () => {
    const stack = await Stack.start({ driver: DRIVERS[0]! });
    try {
      const report = await runFuzz(stack, CASES, SEED);
      if (report.findings.length + report.troubles.length > 0) throw new Error(renderReport(report));
    } finally {
      await stack.stop();
    }
  });
});
