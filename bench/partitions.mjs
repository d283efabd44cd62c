// npm run bench:partitions: what partitions of the log would change (docs/inside/adr/0045-partitions-measured.md). Three copies of
// `task_events` in one Postgres with fsync: one table as it is, sixteen partitions by a hash of the tenant, and thirty partitions by
// the id of the task, which is its time. EVENTS (3000000) of 30 days in tasks of 50, of TENANTS (20), READS (3000).
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import services from '../dist/apps/local/src/services/index.js';
import { quantile } from './load.mjs';
import { circumstances } from './report.mjs';
import { postgresOptions } from './stock.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const number = (name, fallback) => Number(process.env[name] ?? fallback);
const EVENTS = number('EVENTS', 3_000_000);
const TENANTS = number('TENANTS', 20);
const READS = number('READS', 3_000);
const PER_TASK = 50;
const DAYS = 30;
/** Events of one deletion, as retention has them: a batch of about 50 ms. */
const BATCH = 2_500;

const COLUMNS = `tenant_id uuid NOT NULL, task_id uuid NOT NULL, sequence int NOT NULL, attempt int NOT NULL, payload json NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(), PRIMARY KEY (tenant_id, task_id, sequence)`;
/** The first id of a day: the time in front, and zeros. */
const idOf = (day) => {
  const hex = Math.floor(Date.now() - (DAYS - day) * 86_400_000)
    .toString(16)
    .padStart(12, '0');
  return `'${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000'`;
};
const VARIANTS = {
  'one table': [`CREATE TABLE log (${COLUMNS})`],
  '16 by hash of the tenant': [
    `CREATE TABLE log (${COLUMNS}) PARTITION BY HASH (tenant_id)`,
    ...Array.from(
      { length: 16 },
      (_, n) => `CREATE TABLE log_${n} PARTITION OF log FOR VALUES WITH (MODULUS 16, REMAINDER ${n})`,
    ),
  ],
  '30 by id of the task': [
    `CREATE TABLE log (${COLUMNS}) PARTITION BY RANGE (task_id)`,
    ...Array.from({ length: DAYS }, (_, n) => {
      const [from, to] = [n === 0 ? 'MINVALUE' : idOf(n), n === DAYS - 1 ? 'MAXVALUE' : idOf(n + 1)];
      return `CREATE TABLE log_${n} PARTITION OF log FOR VALUES FROM (${from}) TO (${to})`;
    }),
  ],
};

const folder = await temporaryFolder();
const postgres = await services.startPostgres(join(folder, 'postgres'), postgresOptions());
const client = new pg.Client(postgres.url);
await client.connect();
// As the connections of Baton.
for (const way of ['seqscan', 'hashjoin', 'mergejoin', 'material'])
  await client.query(`SET enable_${way} = off`);

const timed = async (work) => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};
const p = (times, q) =>
  quantile(
    times.sort((a, b) => a - b),
    q,
  ).toFixed(2);

async function measure(variant, statements) {
  for (const statement of statements) await client.query(statement);
  const filled = await timed(() =>
    client.query(
      `INSERT INTO log SELECT tenant, task, s, 1, '{"artifactUpdate":{"artifact":{"artifactId":"reply","parts":[{"text":"bit"}]}}}', at
       FROM (SELECT ('00000000-0000-4000-8000-' || lpad((i % ${TENANTS})::text, 12, '0'))::uuid AS tenant, uuidv7(-age) AS task, now() - age AS at
         FROM generate_series(1, ${EVENTS / PER_TASK}) i, LATERAL (SELECT interval '${DAYS} days' * (1 - i / ${EVENTS / PER_TASK}::float) AS age) a) made,
       generate_series(1, ${PER_TASK}) s`,
    ),
  );
  await client.query('VACUUM (ANALYZE) log');
  const { rows: sample } = await client.query(
    `SELECT tenant_id, task_id FROM log WHERE sequence = 1 ORDER BY random() LIMIT ${READS}`,
  );
  const resumes = [];
  for (const { tenant_id, task_id } of sample) {
    resumes.push(
      await timed(() =>
        client.query({
          name: `resume ${variant}`,
          text: 'SELECT sequence, payload FROM log WHERE tenant_id = $1 AND task_id = $2 AND sequence > $3 ORDER BY sequence LIMIT 100',
          values: [tenant_id, task_id, PER_TASK - 3],
        }),
      ),
    );
  }
  const appends = [];
  for (const { tenant_id } of sample.slice(0, 1_000)) {
    appends.push(
      await timed(() =>
        client.query({
          name: `append ${variant}`,
          text: `INSERT INTO log SELECT $1, uuidv7(), s, 1, '{}' FROM generate_series(1, 20) s`,
          values: [tenant_id],
        }),
      ),
    );
  }
  // The first three days: of all tenants in batches by the key, as retention does.
  const tasks = await client.query(
    `SELECT tenant_id, task_id FROM log WHERE task_id < ${idOf(3)} AND sequence = 1 ORDER BY 1, 2`,
  );
  const expired = tasks.rows;
  const batches = [];
  for (let i = 0; i < expired.length; i += BATCH / PER_TASK) {
    const some = expired.slice(i, i + BATCH / PER_TASK);
    batches.push(
      await timed(() =>
        client.query({
          name: `purge ${variant}`,
          text: `DELETE FROM log USING unnest($1::uuid[], $2::uuid[]) AS e(tenant_id, task_id)
            WHERE log.tenant_id = e.tenant_id AND log.task_id = e.task_id AND sequence BETWEEN 1 AND ${PER_TASK}`,
          values: [some.map((row) => row.tenant_id), some.map((row) => row.task_id)],
        }),
      ),
    );
  }
  const deleted = batches.reduce((sum, ms) => sum + ms, 0);
  const vacuumed = await timed(() => client.query('VACUUM log'));
  const hasRanges = statements.some((statement) => statement.includes('RANGE'));
  const dropped = hasRanges ? await timed(() => client.query('DROP TABLE log_3')) : NaN;
  const { rows: size } = await client.query(
    `SELECT sum(pg_total_relation_size(oid)) / 1e6 AS mb FROM pg_class WHERE relkind = 'r' AND relname LIKE 'log%'`,
  );
  await client.query('DROP TABLE log');
  return {
    'filled, events/s': Math.round(EVENTS / (filled / 1000)),
    MB: Math.round(size[0].mb),
    'resume p50 ms': p(resumes, 0.5),
    'resume p99 ms': p(resumes, 0.99),
    'append of 20 p50 ms': p(appends, 0.5),
    'deleted, events/s': Math.round((expired.length * PER_TASK) / (deleted / 1000)),
    'batch p99 ms': p(batches, 0.99),
    'vacuum ms': Math.round(vacuumed),
    'drop of a day, ms': Number.isNaN(dropped) ? '–' : dropped.toFixed(0),
  };
}

try {
  const results = {};
  for (const [name, statements] of Object.entries(VARIANTS)) results[name] = await measure(name, statements);
  console.log(circumstances(`${EVENTS.toLocaleString('en')} events of ${TENANTS} tenants.`));
  console.table(results);
} finally {
  await client.end();
  await postgres.process.stop();
  await rm(folder, { recursive: true, force: true });
}
