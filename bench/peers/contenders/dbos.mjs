import { fileURLToPath } from 'node:url';
import { freePort, ownServices, startProcess } from '../../servers.mjs';
import { eventsIn, post } from './caller.mjs';
import { supervised } from './supervised.mjs';

const MAIN = fileURLToPath(new URL('../servers/dbos.mjs', import.meta.url));

/** One process of the application, on Postgres. It creates its tables itself. */
export async function startDbos() {
  const own = await ownServices({ tables: 'SELECT', redis: false });
  const port = await freePort();
  const start = async () => (await startProcess(MAIN, [], { ...own.env, PORT: String(port) })).child;
  const main = await supervised(start);
  const url = `http://127.0.0.1:${port}`;
  return {
    name: 'DBOS',
    setup: 'the application, Postgres',
    databaseUrl: own.env.DATABASE_URL,
    processes: () => ({ application: main.pid(), ...own.pids }),
    send: () => post(`${url}/send`, 'hello'),
    steps: () => post(`${url}/steps`, 'hello'),
    stream: async (chunks) => eventsIn(await post(`${url}/stream`, String(chunks))),
    sleep: () => post(`${url}/sleep`, '3600000'),
    ticker: (observer) => post(`${url}/ticker`, observer),
    /** Without its paid Conductor, workflows continue when the process is started again. */
    kill: async () => main.kill(),
    stop: async () => {
      main.stop();
      await own.stop();
    },
  };
}
