import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Target } from '../../client.mjs';
import { freePort, ownServices } from '../../servers.mjs';
import { until } from './caller.mjs';
import { programPath } from './programs.mjs';

const MAIN = fileURLToPath(new URL('../servers/a2a_sdk.py', import.meta.url));

/** The official A2A SDK's server for Python, with its tasks in Postgres. It has no durable steps and no recovery. */
export async function startA2aSdkPython() {
  const own = await ownServices({ tables: 'SELECT' });
  const port = String(await freePort());
  const env = { ...process.env, ...own.env, PORT: port };
  const server = spawn(programPath('python/bin/python'), [MAIN], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const target = new Target('A2A SDK, Python', `http://127.0.0.1:${port}/`);
  await until(() => target.send());
  return {
    name: 'A2A SDK, Python',
    setup: 'one process, Postgres',
    databaseUrl: own.env.DATABASE_URL,
    processes: () => ({ server: server.pid, ...own.pids }),
    send: () => target.send(),
    stream: async (chunks) => Math.min(chunks, await target.stream(chunks)),
    stop: async () => {
      target.close();
      server.kill('SIGKILL');
      await own.stop();
    },
  };
}
