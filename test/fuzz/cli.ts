/* eslint-disable no-console -- what a person at a terminal reads */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startServices } from '../support/services.js';
import { Stack } from '../support/stack.js';
import { renderReport, runFuzz } from './fuzz.js';

const USAGE = `npm run fuzz -- [options]
  --cases N   cases to try, codecs and live requests together (100000)
  --seed N    what every case follows from (a new one)`;

/** `npm run fuzz`. @returns the exit code: 0 only if nothing at all was found */
export async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { cases: { type: 'string' }, seed: { type: 'string' } } });
  const cases = Number(values.cases ?? 100_000);
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  if (!Number.isInteger(cases) || cases < 1 || !Number.isInteger(seed)) {
    console.error(USAGE);
    return 2;
  }
  const started = performance.now();
  console.error(`seed ${seed}`);
  const stop = await startServices();
  const driver = process.env.TEST_REDIS_URL ? 'redis' : 'postgres';
  const stack = await Stack.start({ driver });
  try {
    const report = await runFuzz(stack, cases, seed, (line) => {
      console.error(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);
    });
    console.log(renderReport(report));
    return report.findings.length + report.troubles.length === 0 ? 0 : 1;
  } finally {
    await stack.stop();
    await stop();
  }
}
