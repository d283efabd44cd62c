import { fileURLToPath } from 'node:url';
import { ownServices, startProcess } from '../../servers.mjs';
import { eventsIn, post } from './caller.mjs';

const MAIN = fileURLToPath(new URL('../servers/bullmq.mjs', import.meta.url));

/** An API and a worker by hand, on the same Redis as Baton: appended to the disk each second. */
export async function startBullmq({ workers = 1 } = {}) {
  const own = await ownServices({ redis: true });
  const api = await startProcess(MAIN, ['api'], own.env);
  const started = Array.from({ length: workers }, () => startProcess(MAIN, ['worker'], own.env));
  const [worker, ...others] = (await Promise.all(started)).map(({ child }) => child);
  const url = `http://127.0.0.1:${api.port}`;
  return {
    name: 'BullMQ by hand',
    setup: 'API, worker, Redis',
    redisUrl: own.env.REDIS_URL,
    processes: () => ({ api: api.child.pid, worker: worker.pid, ...own.pids }),
    send: () => post(`${url}/send`, 'hello'),
    steps: () => post(`${url}/steps`, 'hello'),
    stream: async (chunks) => eventsIn(await post(`${url}/stream`, String(chunks))),
    sleep: () => post(`${url}/sleep`, '3600000'),
    ticker: (observer) => post(`${url}/ticker`, observer),
    kill: async () => {
      worker.removeAllListeners('exit');
      worker.kill('SIGKILL');
      return worker.pid;
    },
    stop: async () => {
      for (const child of [api.child, worker, ...others]) child.kill('SIGKILL');
      await own.stop();
    },
  };
}
