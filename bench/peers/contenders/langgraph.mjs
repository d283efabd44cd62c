import { spawn } from 'node:child_process';
import { cp, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../servers.mjs';
import { temporaryFolder } from '../../temporary-folder.mjs';
import { agentProtocol } from './agent-protocol.mjs';
import { until } from './caller.mjs';
import { programPath } from './programs.mjs';

const GRAPHS = fileURLToPath(new URL('../servers/graphs', import.meta.url));

/** LangGraph's own server as it runs without a licence: one process, all in memory. Its server with Postgres needs a licence. */
export async function startLanggraph() {
  // It writes into the folder that it runs in.
  const home = await temporaryFolder();
  await cp(GRAPHS, home, { recursive: true });
  const port = String(await freePort());
  const env = { ...process.env, LANGSMITH_TRACING: 'false', LANGGRAPH_CLI_NO_ANALYTICS: '1' };
  const args = ['dev', '--no-browser', '--no-reload', '--port', port, '--server-log-level', 'error'];
  const stdio = ['ignore', 'ignore', process.env.DEBUG ? 'inherit' : 'ignore'];
  const server = spawn(programPath('python/bin/langgraph'), args, { env, stdio, cwd: home });
  const url = `http://127.0.0.1:${port}`;
  await until(() => fetch(`${url}/ok`));
  const { send, steps, stream } = agentProtocol(url);
  await until(send);
  return {
    name: 'LangGraph dev',
    setup: 'one process, in memory',
    processes: () => ({ server: server.pid }),
    send,
    steps,
    stream,
    stop: async () => {
      server.kill('SIGKILL');
      await rm(home, { recursive: true, force: true });
    },
  };
}
