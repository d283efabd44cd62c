import { fileURLToPath } from 'node:url';
import { startCluster } from '../../cluster.mjs';

const AGENTS = fileURLToPath(new URL('../../agents', import.meta.url));

/** One API and one worker, on Postgres and Redis. */
export async function startBaton({ workers = 1 } = {}) {
  const cluster = await startCluster({ apis: 1, workers, env: { BATON_AGENTS_DIR: AGENTS } });
  const targetOf = async (agent) => (await cluster.tenant({ agent })).targets[0];
  const [echo, steps, ticker, sleeper] = await Promise.all(
    ['echo', 'steps', 'ticker', 'sleeper'].map(targetOf),
  );
  return {
    name: 'Baton',
    setup: 'API, worker, Postgres, Redis',
    send: () => echo.send(),
    steps: () => steps.send(),
    // Status frames are not chunks.
    stream: async (chunks) => Math.min(chunks, await echo.stream(chunks)),
    sleep: () => sleeper.submit('hello'),
    ticker: (url) => ticker.submit(url),
    /** One of two workers; a supervisor would start it again. */
    kill: async () => {
      const pid = cluster.processes()['worker 1'];
      process.kill(pid, 'SIGKILL');
      return pid;
    },
    ...cluster,
  };
}
