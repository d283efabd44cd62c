import { driversOf, NIGHTLY } from '../support/nightly.js';
import { PARTS, type Part } from './finding.js';
import { isClean, renderReport, runFuzz, sharesOf } from './fuzz.js';

// The short version of `npm run fuzz`, longer at night. A seed of your own: FUZZ_SEED.
const SEED = Number(process.env.FUZZ_SEED ?? 20261121);
const CASES = Number(process.env.FUZZ_CASES ?? (NIGHTLY ? 5_000 : 150));
// Streams have a spec of their own.
const CONTENT: readonly Part[] = ['stream', 'settings', 'model', 'tool', 'remote'];
const WIRE = PARTS.filter((part) => !CONTENT.includes(part));
const DRIVERS = driversOf('postgres');

describe.each(DRIVERS)('with %s, whatever is sent', (driver) => {
  it('is answered, in good form and without a word too many, by processes that live on', async () => {
    // What comes over the wire has nothing to do with the driver. What tenants set up is run by workers.
    const wire = sharesOf(CASES, driver === DRIVERS[0] ? WIRE : []);
    // By day test/quirks has odd models, tools and remote agents.
    const content = NIGHTLY ? { settings: 40, model: 24, tool: 24, remote: 24 } : { settings: 40 };
    const report = await runFuzz(driver, { ...wire, ...content }, SEED);
    process.stdout.write(`${renderReport(report)}\n`);
    if (!isClean(report)) throw new Error(renderReport(report));
  });
});
