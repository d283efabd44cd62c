/* oxlint-disable no-console -- what a person at a terminal reads */
import { runChaos } from './chaos.js';
import { renderMachine, runMachine } from './machine.js';
import { readOptions, USAGE } from './options.js';
import { renderPressure, runPressure } from './pressure.js';
import { renderReport, reportOn } from './report.js';

/** `npm run chaos`. @returns the exit code: 0 only if nothing at all was found */
export async function main(args: string[]): Promise<number> {
  let options;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const { json, help: _, pressure, machine, ...chosen } = options;
  const started = performance.now();
  const at = () => `${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s`;
  if (pressure) {
    const report = await runPressure(pressure, (line) => console.error(at(), line));
    console.log(json ? JSON.stringify(report, null, 2) : renderPressure(report));
    return report.faults.length === 0 ? 0 : 1;
  }
  if (machine) {
    const report = await runMachine(machine, (line) => console.error(at(), line));
    console.log(json ? JSON.stringify(report, null, 2) : renderMachine(report));
    return report.faults.length === 0 ? 0 : 1;
  }
  console.error(`seed ${chosen.seed}`);
  const report = reportOn(chosen, await runChaos(chosen, (line) => console.error(at(), line)));
  console.log(json ? JSON.stringify(report, null, 2) : renderReport(report));
  return report.passed ? 0 : 1;
}
