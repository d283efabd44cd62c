/* oxlint-disable no-console -- what a person at a terminal reads */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startServices } from '../support/services.js';
import { PARTS, type Part } from './finding.js';
import { type Driver, isClean, renderReport, runFuzz, sharesOf } from './fuzz.js';

const USAGE = `npm run fuzz -- [options]
  --cases N        cases to try on each driver, all parts together (100000)
  --seed N         what every case follows from (a new one)
  --driver NAME    redis or postgres (both, where there is a Redis)
  --only A,B       only these parts: ${PARTS.join(', ')}`;

const OPTIONS = {
  cases: { type: 'string', default: '100000' },
  seed: { type: 'string' },
  driver: { type: 'string' },
  only: { type: 'string', default: PARTS.join(',') },
  help: { type: 'boolean', default: false },
} as const;

/** `npm run fuzz`. @returns the exit code: 0 only if nothing at all was found */
export async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const cases = Number(values.cases);
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  const only = values.only.split(',') as Part[];
  const isKnown = only.every((part) => PARTS.includes(part));
  const isDriver = values.driver === undefined || ['redis', 'postgres'].includes(values.driver);
  if (!Number.isInteger(cases) || cases < 1 || !Number.isInteger(seed) || !isKnown || !isDriver) {
    console.error(USAGE);
    return 2;
  }
  const started = performance.now();
  console.error(`seed ${seed}`);
  const stop = await startServices();
  const available: Driver[] = process.env.TEST_REDIS_URL ? ['redis', 'postgres'] : ['postgres'];
  let clean = true;
  try {
    for (const driver of available.filter((each) => each === (values.driver ?? each))) {
      const report = await runFuzz(driver, sharesOf(cases, only), seed, (line) => {
        console.error(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);
      });
      console.log(renderReport(report));
      clean &&= isClean(report);
    }
  } finally {
    await stop();
  }
  return clean ? 0 : 1;
}
