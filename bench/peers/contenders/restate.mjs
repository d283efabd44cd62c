import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { freePort, startProcess } from '../../servers.mjs';
import { temporaryFolder } from '../../temporary-folder.mjs';
import { post, until } from './caller.mjs';
import { supervised } from './supervised.mjs';

const MAIN = fileURLToPath(new URL('../servers/restate.mjs', import.meta.url));
const SERVER = createRequire(import.meta.url).resolve(
  '@restatedev/restate-server-linux-x64/bin/restate-server',
);

/** One server, which syncs its log to the disk, and one process with the service. */
export async function startRestate() {
  const home = await temporaryFolder();
  const [ingress, admin, node, service] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const env = {
    ...process.env,
    RESTATE_BASE_DIR: home,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
    DO_NOT_TRACK: '1',
    RESTATE_LOG_FILTER: 'off',
  };
  const server = spawn(SERVER, ['--node-name', 'bench'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const start = async () =>
    (await startProcess(MAIN, [], { PORT: String(service), RESTATE_LOGGING: 'ERROR' })).child;
  const main = await supervised(start);
  await until(() => fetch(`http://127.0.0.1:${admin}/health`));
  await until(() => register(admin, service));
  const url = `http://127.0.0.1:${ingress}/bench`;
  const json = { 'content-type': 'application/json' };
  const call = (handler, value) => post(`${url}/${handler}`, JSON.stringify(value), json);
  const begin = (handler, value) => post(`${url}/${handler}/send`, JSON.stringify(value), json);
  await until(() => call('send', 'hello'));
  return {
    name: 'Restate',
    setup: 'server, service',
    processes: () => ({ server: server.pid, service: main.pid() }),
    send: () => call('send', 'hello'),
    steps: () => call('steps', 'hello'),
    stream: async (chunks) => {
      await call('stream', chunks);
      return chunks;
    },
    sleep: () => begin('sleep', 3_600_000),
    ticker: (observer) => begin('ticker', observer),
    kill: async () => main.kill(),
    stop: async () => {
      main.stop();
      server.kill('SIGKILL');
      await new Promise((resolve) => server.once('exit', resolve));
      await rm(home, { recursive: true, force: true });
    },
  };
}

async function register(admin, service) {
  await post(
    `http://127.0.0.1:${admin}/deployments`,
    JSON.stringify({ uri: `http://127.0.0.1:${service}` }),
    { 'content-type': 'application/json' },
  ).catch((error) => {
    if (!/: 201 /.test(error.message)) throw error;
  });
}
