import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { freePort, ownServices } from '../../servers.mjs';
import { agentProtocol } from './agent-protocol.mjs';
import { until } from './caller.mjs';
import { programPath } from './programs.mjs';

const CONFIG = fileURLToPath(new URL('../servers/graphs/langgraph.json', import.meta.url));

/** One instance, which is API and worker, on Postgres and Redis. It creates its tables itself. */
export async function startAegra({ workers = 1 } = {}) {
  const own = await ownServices({ tables: 'SELECT', redis: true });
  const instances = [];
  // The first creates the tables.
  for (let i = 0; i < workers; i++) instances.push(await startInstance(own.env));
  const [{ child }] = instances;
  // The one that is killed takes no calls: the other one does.
  const calls = agentProtocol(instances.at(-1).url);
  await until(() => calls.send());
  return {
    name: 'Aegra',
    setup: 'one instance, Postgres, Redis',
    databaseUrl: own.env.DATABASE_URL,
    redisUrl: own.env.REDIS_URL,
    processes: () => ({ instance: child.pid, ...own.pids }),
    ...calls,
    kill: async () => {
      child.kill('SIGKILL');
      return child.pid;
    },
    stop: async () => {
      for (const instance of instances) instance.child.kill('SIGKILL');
      await own.stop();
    },
  };
}

/** What `aegra serve` starts. */
async function startInstance(services) {
  const port = String(await freePort());
  const env = {
    ...process.env,
    ...services,
    AEGRA_CONFIG: CONFIG,
    REDIS_BROKER_ENABLED: 'true',
    ENV_MODE: 'PRODUCTION',
    LOG_LEVEL: 'ERROR',
  };
  const args = ['-m', 'uvicorn', 'aegra_api.main:app', '--host', '127.0.0.1', '--port', port];
  const stdio = ['ignore', 'ignore', process.env.DEBUG ? 'inherit' : 'ignore'];
  const child = spawn(programPath('python/bin/python'), [...args, '--log-level', 'error'], { env, stdio });
  const url = `http://127.0.0.1:${port}`;
  await until(() => fetch(`${url}/health`));
  return { child, url };
}
