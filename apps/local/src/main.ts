import { messageOf } from '@baton/telemetry';
import 'reflect-metadata';
import { EnvironmentError, loadLocalEnvironment, processEnvironment, unknownSettings } from '@baton/config';
import { hideProcess } from '@baton/sandbox';
import { announcement } from './announcement.js';
import { Home } from './home.js';
import { StartError } from './start-error.js';
import { LocalBaton } from './local-baton.js';
import type { SupervisorEvents } from './supervisor.js';

const printLine = (line: string): void => console.log(line);

/** `npm start`: everything on one machine. Resolves to the exit code. */
async function main(): Promise<number> {
  hideProcess();
  const begin = performance.now();
  const source = processEnvironment();
  const local = loadLocalEnvironment(source);
  for (const sentence of unknownSettings(source)) console.error(`Warning: ${sentence}`);
  const home = Home.claim(local.home);
  let giveUp: SupervisorEvents['giveUp'] = () => undefined;
  const failed = new Promise<number>((resolve) => {
    giveUp = (line) => {
      console.error(`${line} Giving up; its log is in ${home.shown('logs')}.`);
      resolve(1);
    };
  });
  const baton = new LocalBaton(
    local,
    home,
    source,
    { say: printLine, giveUp },
    process.argv.includes('--key-lost'),
  );
  const interrupted = stopOnSignals(baton);
  try {
    const started = await Promise.race([baton.start(), interrupted]);
    if (started) {
      const seconds = (performance.now() - begin) / 1000;
      printLine(announcement(started, seconds, home.shown('demo.json'), home.shown('logs')));
    }
    const code = await Promise.race([interrupted.then(() => 0), failed]);
    await baton.stop();
    printLine(`Stopped. The tasks are kept in ${home.shown()}.`);
    return code;
  } catch (error) {
    await baton.stop();
    throw error;
  }
}

/** Resolves at the first signal; the second one ends everything at once. */
function stopOnSignals(baton: LocalBaton): Promise<void> {
  return new Promise((resolve) => {
    let count = 0;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        count += 1;
        if (count === 1) printLine('\nStopping … (again: immediately)');
        else {
          baton.kill();
          process.exit(1);
        }
        resolve();
      });
    }
  });
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    const isPlain = error instanceof EnvironmentError || error instanceof StartError;
    console.error(isPlain ? error.message : `Baton could not start: ${messageOf(error)}`);
    process.exit(1);
  },
);
