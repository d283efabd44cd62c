// The two sides of the comparison: Baton as `npm start` runs it, and the official SDK's own server.
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import { formatSSEEvent } from '@a2a-js/sdk';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Target } from './client.mjs';

const MAIN = fileURLToPath(new URL('../dist/apps/local/src/main.js', import.meta.url));

/** Baton with everything durable: embedded Postgres with fsync, Redis if there is one, API and workers as processes. */
export async function startBaton({ workers, env: more = {} }) {
  const home = await mkdtemp(join(tmpdir(), 'baton-bench-'));
  const managementPort = await freePort();
  const env = {
    ...process.env,
    BATON_HOME: home,
    PORT: String(await freePort()),
    MANAGEMENT_PORT: String(managementPort),
    WORKERS: String(workers),
    LOG_LEVEL: 'warn',
    ...more,
  };
  const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await waitFor(child.stdout, 'curl');
  const { url, token } = JSON.parse(await readFile(join(home, 'demo.json'), 'utf8'));
  const { databaseUrl } = JSON.parse(await readFile(join(home, 'runtime.json'), 'utf8'));
  const target = new Target('baton', `${url}/agents/echo`, { authorization: `Bearer ${token}` });
  return {
    target,
    url,
    metricsUrl: `http://127.0.0.1:${managementPort}/metrics`,
    token,
    home,
    databaseUrl,
    stop: async () => {
      target.close();
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('exit', resolve));
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The SDK's server in one process with its memory store: nothing is durable, nothing leaves the process. */
export async function startSdkServer() {
  const card = {
    name: 'echo',
    capabilities: { streaming: true, extensions: [] },
    supportedInterfaces: [],
    skills: [],
  };
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), new Echo()),
  );
  const server = http.createServer((request, response) => void answer(handler, request, response));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const target = new Target('sdk, in memory', `http://127.0.0.1:${server.address().port}/`);
  return {
    target,
    stop: async () => {
      target.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(handler, request, response) {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const result = await handler.handle(body, new ServerCallContext({ requestedVersion: '1.0' }));
  if (!(Symbol.asyncIterator in result)) return response.end(JSON.stringify(result));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for await (const event of result) response.write(formatSSEEvent(event));
  response.end();
}

class Echo {
  async execute({ taskId, contextId, userMessage }, bus) {
    const ids = { taskId, contextId, metadata: undefined };
    const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(1),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(2) }));
    const chunks = userMessage.metadata?.echo?.chunks ?? 1;
    for (let i = 0; i < chunks; i++) {
      const artifact = {
        artifactId: 'echo',
        name: '',
        description: '',
        parts: userMessage.parts,
        metadata: undefined,
        extensions: [],
      };
      bus.publish(
        AgentEvent.artifactUpdate({ ...ids, artifact, append: i > 0, lastChunk: i === chunks - 1 }),
      );
    }
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(3) }));
    bus.finished();
  }
  async cancelTask() {}
}

async function freePort() {
  const server = http.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function waitFor(stream, word) {
  return new Promise((resolve, reject) => {
    let seen = '';
    stream.setEncoding('utf8').on('data', (chunk) => {
      seen += chunk;
      if (seen.includes(word)) resolve();
    });
    stream.on('end', () => reject(new Error(`Baton did not start:\n${seen}`)));
  });
}
