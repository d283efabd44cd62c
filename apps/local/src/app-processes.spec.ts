import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { killWhenSilent } from './app-processes.js';

/** Answers three pings, and then its event loop stands still. */
const FREEZES = `
  let pings = 0;
  process.on('message', () => {
    process.send({ type: 'pong' });
    if (++pings === 3) setImmediate(() => { for (;;); });
  });`;

it('kills a process that no longer answers pings', async () => {
  const child = spawn(process.execPath, ['-e', FREEZES], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const answers: unknown[] = [];
  child.on('message', (message) => answers.push(message));
  killWhenSilent(child, 4_000);
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect([code, signal]).toEqual([null, 'SIGKILL']);
  expect(answers).toHaveLength(3);
});
