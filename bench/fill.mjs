// Fills a database with rows of finished tasks. Postgres generates them, in slices.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';

const SLICE = 20_000;
/** Every seventh task of a tenant is in one long conversation, the others are in contexts of twenty. */
export const LONG_CONTEXT = 'long-conversation';
/** So many tasks of each tenant wait for their caller, whatever else there is. */
const WAITING = 60;

/** A connection that sees every tenant's rows. @param home of an `npm start`: then as the owner of its tables, with its key */
export async function connect(databaseUrl, home) {
  const read = (name) => {
    const file = join(home ?? '', name);
    return home && existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  };
  const url = new URL(databaseUrl);
  const password = read('postgres/owner-password');
  if (password) Object.assign(url, { username: 'baton_owner', password });
  const client = new pg.Client({ connectionString: url.toString() });
  await client.connect();
  await client.query(
    `SELECT set_config('baton.tenant', 'system', false), set_config('baton.system_key', $1, false)`,
    [read('database-system-key')],
  );
  await client.query(ID_AT);
  return client;
}

/** A UUID of version 7 with this time. Postgres has its own from release 18. */
const ID_AT = `
CREATE FUNCTION pg_temp.id_at(at timestamptz) RETURNS uuid LANGUAGE sql AS $$
  SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$`;

/** The tenants of a database: the demo tenant and `others` more. */
export async function tenantsOf(client, others) {
  await client.query(
    `INSERT INTO tenants (id, slug) SELECT gen_random_uuid(), 'other-' || i FROM generate_series(1, $1) i`,
    [others],
  );
  const { rows } = await client.query(`SELECT id, slug FROM tenants ORDER BY slug <> 'demo', slug`);
  return rows.map(({ id }) => id);
}

/**
 * `tasks` tasks of `events` events each, the oldest of them a hundred days old; every fifth has failed.
 * @param note called with the number of events so far
 * @param chunk payload of the events between the first two and the last: `full`, or the shortest that a worker could write
 */
export async function fillTenant(client, tenantId, tasks, events, note, chunk = 'full') {
  for (let from = 1; from <= tasks; from += SLICE) {
    const to = Math.min(tasks, from + SLICE - 1);
    await client.query(
      `CREATE TEMP TABLE made AS SELECT pg_temp.id_at(now() - age) AS id, pg_temp.id_at(now() - age) AS run_id, now() - age AS at,
         CASE WHEN i <= ${WAITING} THEN 6 WHEN i % 5 = 0 THEN 4 ELSE 3 END AS state,
         CASE i % 7 WHEN 0 THEN '${LONG_CONTEXT}' ELSE 'context-' || i / 20 END AS context_id
       FROM generate_series(${from}, ${to}) i, LATERAL (SELECT interval '100 days' * (${tasks} + 1 - i) / ${tasks} AS age) a`,
    );
    await insertTasks(client, tenantId, events, chunk);
    await client.query('DROP TABLE made');
    note(to * events);
  }
}

/** One task with a log of that many events. @returns its id */
export async function fillHuge(client, tenantId, events, note) {
  await client.query(
    `CREATE TEMP TABLE made AS SELECT pg_temp.id_at(now()) AS id, pg_temp.id_at(now()) AS run_id, now() AS at, 3 AS state, 'huge' AS context_id`,
  );
  await insertTasks(client, tenantId, events);
  const { rows } = await client.query('SELECT id FROM made');
  await client.query('DROP TABLE made');
  note(events);
  return rows[0].id;
}

const STATES = `CASE state WHEN 3 THEN 'TASK_STATE_COMPLETED' WHEN 4 THEN 'TASK_STATE_FAILED' ELSE 'TASK_STATE_INPUT_REQUIRED' END`;
const TIME = `to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const status = (state) => `json_build_object('state', ${state}, 'timestamp', ${TIME})`;
const MESSAGE = `json_build_object('messageId', id, 'taskId', id, 'contextId', context_id, 'role', 'ROLE_USER',
  'parts', '[{"text":"What is there to say?"}]'::json)`;
const ARTIFACT = `json_build_object('artifactId', 'reply', 'parts', '[{"text":"Sixty characters of an answer that is replaced bit by bit."}]'::json)`;

const IDS = `'taskId', id, 'contextId', context_id`;
const CHUNKS = {
  full: `json_build_object('artifactUpdate', json_build_object(${IDS}, 'artifact', ${ARTIFACT}, 'append', false))`,
  short: `'{"artifactUpdate":{"artifact":{"artifactId":"reply","parts":[{"text":"bit"}]}}}'::json`,
};

/** The tasks of the table `made`, each with its message, its run and its log. */
async function insertTasks(client, tenantId, events, chunk = 'full') {
  await client.query(
    `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence,
       artifacts, artifacts_sequence, attempt, created_at)
     SELECT $1, id, 'echo', context_id, md5(context_id)::uuid, state, ${status(STATES)}, date_trunc('milliseconds', at),
       $2, json_build_array(${ARTIFACT}), $2, 1, at FROM made`,
    [tenantId, events],
  );
  await client.query(
    `INSERT INTO task_messages (tenant_id, task_id, sequence, message) SELECT $1, id, 1, ${MESSAGE} FROM made`,
    [tenantId],
  );
  await client.query(
    `INSERT INTO runs (tenant_id, id, task_id, state, attempt, start_sequence, extensions, finished_at)
     SELECT $1, run_id, id, 'succeeded', 1, 1, '{}', at FROM made`,
    [tenantId],
  );
  await client.query(
    `INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, created_at)
     SELECT $1, id, s, least(s - 1, 1), CASE s
       WHEN 1 THEN json_build_object('task', json_build_object('id', id, 'contextId', context_id, 'status',
         ${status(`'TASK_STATE_SUBMITTED'`)}, 'history', json_build_array(${MESSAGE})))
       WHEN 2 THEN json_build_object('statusUpdate', json_build_object(${IDS}, 'status', ${status(`'TASK_STATE_WORKING'`)}))
       WHEN $2::int THEN json_build_object('statusUpdate', json_build_object(${IDS}, 'status', ${status(STATES)}))
       ELSE ${CHUNKS[chunk]}
     END, at FROM made, generate_series(1, $2::int) s`,
    [tenantId, events],
  );
}
