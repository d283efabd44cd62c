// The bare skeleton: the least that has the parts of Baton. HTTP, a queue, a worker process, one Postgres transaction a task at
// its end, pub/sub, server-sent events. No tokens, no checks, and a task that is lost with its worker.
// Usage: bare.mjs api | worker, with DATABASE_URL and REDIS_URL.
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { serve } from './replies.mjs';

const { DATABASE_URL, REDIS_URL } = process.env;

export const TABLES = `
  CREATE TABLE tasks (id uuid PRIMARY KEY, context_id uuid, status json, message json);
  CREATE TABLE events (task_id uuid, sequence bigint, payload json, PRIMARY KEY (task_id, sequence));`;

const FINISH = `
  WITH task AS (INSERT INTO tasks VALUES ($1, $2, $3, $4))
  INSERT INTO events SELECT $1, sequence, payload FROM unnest($5::json[]) WITH ORDINALITY AS e(payload, sequence)`;

const status = (state) => ({ state, timestamp: new Date().toISOString() });

async function api() {
  const queue = new Queue('runs', {
    connection: new Redis(REDIS_URL, { maxRetriesPerRequest: null }),
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  await serve(REDIS_URL, {
    accept: ({ params: { message } }) => ({
      id: randomUUID(),
      contextId: randomUUID(),
      status: status('TASK_STATE_SUBMITTED'),
      history: [message],
    }),
    enqueue: (task, channel) => queue.add('run', { task, channel }, { jobId: task.id }),
  });
}

async function worker() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 16 });
  const redis = new Redis(REDIS_URL);
  const run = async ({ data: { task, channel } }) => {
    const publish = (events) => redis.publish(channel, JSON.stringify({ taskId: task.id, events }));
    const ids = { taskId: task.id, contextId: task.contextId };
    const [message] = task.history;
    const events = [{ statusUpdate: { ...ids, status: status('TASK_STATE_WORKING') } }];
    const chunks = message.metadata?.echo?.chunks ?? 1;
    for (let i = 1; i <= chunks; i++) {
      const artifact = { artifactId: 'echo-1', name: 'echo', parts: message.parts };
      events.push({ artifactUpdate: { ...ids, artifact, append: i > 1, lastChunk: i === chunks } });
    }
    void publish(events);
    const completed = { statusUpdate: { ...ids, status: status('TASK_STATE_COMPLETED') } };
    const payloads = [{ task }, ...events, completed].map((event) => JSON.stringify(event));
    const end = completed.statusUpdate.status;
    await pool.query({
      name: 'finish',
      text: FINISH,
      values: [task.id, task.contextId, end, message, payloads],
    });
    await publish([completed]);
  };
  const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
  await new Worker('runs', run, { connection, concurrency: 100 }).waitUntilReady();
  process.send({});
}

if (process.argv[2] === 'api') await api();
if (process.argv[2] === 'worker') await worker();
