// The official SDK's own server with an `echo` agent, in one process. Its task store is in memory, or in Postgres with
// DATABASE_URL. Tells the parent process its port.
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import { formatSSEEvent, Task } from '@a2a-js/sdk';
import http from 'node:http';
import pg from 'pg';

export const TABLES = 'CREATE TABLE sdk_tasks (id text PRIMARY KEY, task json NOT NULL)';

/** One row per task. The SDK saves the whole task after each event. */
class PostgresTaskStore {
  #pool;

  constructor(connectionString) {
    this.#pool = new pg.Pool({ connectionString, max: 16 });
  }

  async save(task) {
    const text = 'INSERT INTO sdk_tasks VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET task = excluded.task';
    await this.#pool.query({ name: 'save', text, values: [task.id, Task.toJSON(task)] });
  }

  async load(id) {
    const { rows } = await this.#pool.query({
      name: 'load',
      text: 'SELECT task FROM sdk_tasks WHERE id = $1',
      values: [id],
    });
    return rows[0] && Task.fromJSON(rows[0].task);
  }

  async list() {
    throw new Error('The benchmark lists no tasks.');
  }
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

async function answer(handler, request, response) {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const result = await handler.handle(body, new ServerCallContext({ requestedVersion: '1.0' }));
  if (!(Symbol.asyncIterator in result)) return response.end(JSON.stringify(result));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for await (const event of result) response.write(formatSSEEvent(event));
  response.end();
}

async function main() {
  const card = {
    name: 'echo',
    capabilities: { streaming: true, extensions: [] },
    supportedInterfaces: [],
    skills: [],
  };
  const { DATABASE_URL } = process.env;
  const store = DATABASE_URL ? new PostgresTaskStore(DATABASE_URL) : new InMemoryTaskStore();
  const handler = new JsonRpcTransportHandler(new DefaultRequestHandler(card, store, new Echo()));
  const server = http.createServer((request, response) => void answer(handler, request, response));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send({ port: server.address().port });
}

if (process.argv[2] === 'serve') await main();
