// The honest skeleton: the same durable steps as Baton, in the fewest statements, and nothing else. A token is checked, the
// protocol is decoded and encoded with the SDK's types. Three commits: accept (task, message, event, run), claim (run, task,
// `working`), and end (events, task, run), each guarded. Kept by no test: no recovery, no cancel, no resume, no tenants, no limits.
// Usage: honest.mjs api | worker, with DATABASE_URL, REDIS_URL, and TOKEN for the API.
import { Message, SendMessageRequest, StreamResponse, Task, taskStateFromJSON } from '@a2a-js/sdk';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { serve } from './replies.mjs';

const { DATABASE_URL, REDIS_URL, TOKEN } = process.env;
const TENANT = '00000000-0000-4000-8000-000000000001';

export const TABLES = `
  CREATE TABLE tokens (hash text PRIMARY KEY, tenant_id uuid NOT NULL);
  CREATE TABLE tasks (tenant_id uuid, id uuid, context_id uuid, status json, artifacts json, last_sequence int NOT NULL,
    active_run_id uuid, attempt int NOT NULL DEFAULT 0, PRIMARY KEY (tenant_id, id));
  CREATE TABLE task_messages (tenant_id uuid, task_id uuid, sequence int, message json, PRIMARY KEY (tenant_id, task_id, sequence));
  CREATE TABLE events (tenant_id uuid, task_id uuid, sequence int, payload json, PRIMARY KEY (tenant_id, task_id, sequence));
  CREATE TABLE message_keys (tenant_id uuid, key text, task_id uuid, PRIMARY KEY (tenant_id, key));
  CREATE TABLE runs (tenant_id uuid, id uuid, task_id uuid, state text, attempt int NOT NULL DEFAULT 0, lease_expires_at timestamptz,
    PRIMARY KEY (tenant_id, id));
  CREATE INDEX ON runs (lease_expires_at) WHERE state = 'running';`;

const ACCEPT = `
  WITH key AS (INSERT INTO message_keys VALUES ($1, $2, $3)),
  task AS (INSERT INTO tasks VALUES ($1, $3, $4, $5, '[]', 1, $6)),
  message AS (INSERT INTO task_messages VALUES ($1, $3, 1, $7)),
  event AS (INSERT INTO events VALUES ($1, $3, 1, $8))
  INSERT INTO runs VALUES ($1, $6, $3, 'queued')`;

const CLAIM = `
  WITH run AS (UPDATE runs SET state = 'running', attempt = attempt + 1, lease_expires_at = now() + interval '3 s'
    WHERE tenant_id = $1 AND id = $2 AND state = 'queued' RETURNING task_id, attempt),
  task AS (UPDATE tasks t SET status = $3, last_sequence = last_sequence + 1, attempt = run.attempt FROM run
    WHERE t.tenant_id = $1 AND t.id = run.task_id AND t.active_run_id = $2 RETURNING t.id, t.last_sequence, t.attempt),
  event AS (INSERT INTO events SELECT $1, id, last_sequence, $4 FROM task)
  SELECT task.last_sequence, task.attempt, message FROM task JOIN task_messages m ON m.tenant_id = $1 AND m.task_id = task.id`;

const FINISH = `
  WITH task AS (UPDATE tasks SET status = $5, artifacts = $6, last_sequence = last_sequence + $7, active_run_id = NULL
    WHERE tenant_id = $1 AND id = $2 AND active_run_id = $3 AND attempt = $4 RETURNING id, last_sequence - $7 AS head),
  run AS (UPDATE runs SET state = 'completed', lease_expires_at = NULL FROM task WHERE tenant_id = $1 AND runs.id = $3)
  INSERT INTO events SELECT $1, id, head + number, payload FROM task, unnest($8::json[]) WITH ORDINALITY AS e(payload, number)`;

const status = (state) => ({ state, timestamp: new Date().toISOString() });
const encode = ($case, value) => StreamResponse.toJSON({ payload: { $case, value } });
const statusUpdate = (ids, state) =>
  encode('statusUpdate', {
    ...ids,
    metadata: undefined,
    status: { ...status(taskStateFromJSON(state)), message: undefined },
  });

async function api() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 16 });
  const tenants = new Map();
  const hashOf = (token) => createHash('sha256').update(token).digest('base64');
  await pool.query('INSERT INTO tokens VALUES ($1, $2)', [hashOf(TOKEN), TENANT]);
  const tenantOf = async ({ authorization = '' }) => {
    const hash = hashOf(authorization.slice('Bearer '.length));
    if (!tenants.has(hash)) {
      const { rows } = await pool.query('SELECT tenant_id FROM tokens WHERE hash = $1', [hash]);
      if (!rows[0]) throw new Error('The token is not valid.');
      tenants.set(hash, rows[0].tenant_id);
    }
    return tenants.get(hash);
  };
  const queue = new Queue('runs', {
    connection: new Redis(REDIS_URL, { maxRetriesPerRequest: null }),
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  await serve(REDIS_URL, {
    accept: async ({ params }, headers) => {
      const tenantId = await tenantOf(headers);
      const { message } = SendMessageRequest.fromJSON(params);
      const ids = { id: randomUUID(), contextId: randomUUID() };
      const own = { ...message, taskId: ids.id, contextId: ids.contextId };
      const task = Task.toJSON({
        ...ids,
        status: { ...status(taskStateFromJSON('TASK_STATE_SUBMITTED')), message: undefined },
        history: [own],
        artifacts: [],
        metadata: undefined,
      });
      const runId = randomUUID();
      const event = JSON.stringify({ task });
      const stored = Message.toJSON(own);
      const values = [tenantId, message.messageId, ids.id, ids.contextId, task.status, runId, stored, event];
      await pool.query({ name: 'accept', text: ACCEPT, values });
      return { ...task, tenantId, runId };
    },
    enqueue: ({ id: taskId, contextId, tenantId, runId }, channel) =>
      queue.add('run', { tenantId, taskId, contextId, runId, channel }, { jobId: runId }),
  });
}

async function worker() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 16 });
  const redis = new Redis(REDIS_URL);
  const run = async ({ data: { tenantId, taskId, contextId, runId, channel } }) => {
    const publish = (events) => redis.publish(channel, JSON.stringify({ taskId, events }));
    const ids = { taskId, contextId };
    const working = statusUpdate(ids, 'TASK_STATE_WORKING');
    const claim = [tenantId, runId, working.statusUpdate.status, JSON.stringify(working)];
    const { rows } = await pool.query({ name: 'claim', text: CLAIM, values: claim });
    if (!rows[0]) return;
    void publish([working]);
    const message = Message.fromJSON(rows[0].message);
    const events = [];
    const chunks = message.metadata?.echo?.chunks ?? 1;
    const parts = [];
    for (let i = 1; i <= chunks; i++) {
      const artifact = {
        artifactId: 'echo-1',
        name: 'echo',
        description: '',
        parts: message.parts,
        metadata: undefined,
        extensions: [],
      };
      const update = { ...ids, artifact, append: i > 1, lastChunk: i === chunks, metadata: undefined };
      events.push(encode('artifactUpdate', update));
      parts.push(...events.at(-1).artifactUpdate.artifact.parts);
    }
    const completed = statusUpdate(ids, 'TASK_STATE_COMPLETED');
    events.push(completed);
    const artifacts = JSON.stringify([{ artifactId: 'echo-1', name: 'echo', parts }]);
    const payloads = events.map((event) => JSON.stringify(event));
    const { attempt } = rows[0];
    const end = [
      tenantId,
      taskId,
      runId,
      attempt,
      completed.statusUpdate.status,
      artifacts,
      events.length,
      payloads,
    ];
    const { rowCount } = await pool.query({ name: 'finish', text: FINISH, values: end });
    if (rowCount > 0) await publish(events);
  };
  const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
  await new Worker('runs', run, { connection, concurrency: 100 }).waitUntilReady();
  process.send({});
}

if (process.argv[2] === 'api') await api();
if (process.argv[2] === 'worker') await worker();
