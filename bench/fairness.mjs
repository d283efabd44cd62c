// npm run bench:fairness: how a flood of one tenant delays a single task of another.
// APIS (2) API and two worker processes with their own services. DRIVER (redis or postgres), CONCURRENCY of a worker
// (10), FLOOD tasks (10000), DELAYS of the flood's runs in ms (10,200,1000), PROBES per phase (40), SECONDS of the
// phases of throughput (15), PHASES (probe,long,weights,many,alone), LONG tasks of 60 s (500), DIST of another build to measure.
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster } from './cluster.mjs';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';

const DRIVER = process.env.DRIVER ?? 'redis';
const APIS = numberSetting('APIS', 2);
const CONCURRENCY = numberSetting('CONCURRENCY', 10);
const FLOOD = numberSetting('FLOOD', 10_000);
const DELAYS = (process.env.DELAYS ?? '10,200,1000').split(',').map(Number);
const PROBES = numberSetting('PROBES', 40);
const SECONDS = numberSetting('SECONDS', 15);
const PHASES = (process.env.PHASES ?? 'probe,long,weights,many,alone').split(',');
const LONG = numberSetting('LONG', 500);
const LONG_MS = 60_000;
const CALLERS = 32;

/** Has the tenant's tasks accepted, `count` in all. */
async function flood({ targets }, count, delayMs) {
  let left = count;
  const caller = async (_, i) => {
    while (left-- > 0) await targets[i % APIS].submit('flood', { echo: { delayMs } });
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/**
 * One task after another: ms from its creation to its `working` event as the log has them, for the caller from
 * sending to the end, and how many runs of others have begun while it waited.
 */
async function probe({ id, targets }, count, pauseMs) {
  const wholes = [];
  const [{ now }] = await cluster.query('SELECT now()');
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await targets[i % APIS].send('probe');
    wholes.push(performance.now() - start);
    await sleep(pauseMs * (0.5 + Math.random()));
  }
  const waited = await cluster.query(
    `SELECT extract(epoch FROM e.created_at - r.created_at)::float * 1000 AS ms, (
       SELECT count(*)::int FROM task_events o
       WHERE coalesce(o.first_sequence, o.sequence) = 2 AND o.created_at > r.created_at AND o.created_at < e.created_at) AS ahead
     FROM runs r JOIN task_events e ON e.tenant_id = r.tenant_id AND e.task_id = r.task_id AND coalesce(e.first_sequence, e.sequence) = 2
     WHERE r.tenant_id = $1 AND r.created_at > $2`,
    [id, now],
  );
  return { waits: waited.map(({ ms }) => ms), ahead: waited.map(({ ahead }) => ahead), wholes };
}

const figures = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  const show = (q) => quantile(sorted, q).toFixed(1);
  return `${show(0.5)} / ${show(0.99)} / ${sorted.at(-1).toFixed(1)}`;
};
const rowOf = ({ waits, ahead, wholes }, waiting) => ({
  'wait ms, p50 / p99 / max': figures(waits),
  'whole ms': figures(wholes),
  'runs begun before it': figures(ahead),
  'still waiting': waiting,
});
const finished = async (cluster, { id }) => {
  const [row] = await cluster.query(
    `SELECT count(*)::int AS n FROM runs WHERE tenant_id = $1 AND state = 'succeeded'`,
    [id],
  );
  return row.n;
};
const cancelWaiting = (cluster) =>
  cluster.query(`UPDATE runs SET state = 'canceled', finished_at = now() WHERE state = 'queued'`);
const idle = async (cluster) => {
  for (;;) {
    const [{ n }] = await cluster.query(
      `SELECT count(*)::int AS n FROM runs WHERE state IN ('queued', 'running')`,
    );
    if (n === 0) return;
    await sleep(200);
  }
};

const rows = {};
const cluster = await startCluster({
  dist: process.env.DIST,
  driver: DRIVER,
  apis: APIS,
  workers: 2,
  env: { WORKER_CONCURRENCY: String(CONCURRENCY) },
});
try {
  const b = await cluster.tenant();
  await probe(b, 50, 0);
  if (PHASES.includes('probe')) {
    for (const delayMs of DELAYS) {
      const a = await cluster.tenant();
      const before = await probe(b, PROBES, 20);
      const accepting = flood(a, FLOOD, delayMs);
      const during = await probe(b, Math.ceil(PROBES / 2), 50);
      await accepting;
      const behind = await probe(b, PROBES, 100);
      const [{ n }] = await cluster.query(`SELECT count(*)::int AS n FROM runs WHERE state = 'queued'`);
      await cancelWaiting(cluster);
      await idle(cluster);
      const after = await probe(b, PROBES, 20);
      const quiet = {
        waits: [...before.waits, ...after.waits],
        ahead: [...before.ahead, ...after.ahead],
        wholes: [...before.wholes, ...after.wholes],
      };
      rows[`idle, around runs of ${delayMs} ms`] = rowOf(quiet, 0);
      rows[`while ${FLOOD} runs of ${delayMs} ms are accepted`] = rowOf(during);
      rows[`behind ${FLOOD} runs of ${delayMs} ms`] = rowOf(behind, n);
    }
    console.table(rows);
  }
  if (PHASES.includes('long')) {
    const a = await cluster.tenant();
    await flood(a, LONG, LONG_MS);
    // Until every slot that is not reserved has a run, and the queue its backlog.
    await sleep(2_000);
    const { waits, wholes } = await probe(b, PROBES, 100);
    console.log(
      `behind ${LONG} runs of ${LONG_MS / 1000} s: a single task of another waits ${figures(waits)} ms, whole ${figures(wholes)} ms`,
    );
    await cancelWaiting(cluster);
    await cluster.query(
      `UPDATE tasks SET state = 5, active_run_id = NULL WHERE tenant_id = $1 AND active_run_id IS NOT NULL`,
      [a.id],
    );
    await cluster.query(
      `UPDATE runs SET state = 'canceled', finished_at = now(), lease_expires_at = NULL WHERE tenant_id = $1 AND state = 'running'`,
      [a.id],
    );
    await idle(cluster);
  }
  if (PHASES.includes('weights')) {
    const [one, three] = [await cluster.tenant({ weight: 1 }), await cluster.tenant({ weight: 3 })];
    const many = Math.min(FLOOD, 3000);
    await Promise.all([flood(one, many, 200), flood(three, many, 200)]);
    const start = [await finished(cluster, one), await finished(cluster, three)];
    await sleep(SECONDS * 1000);
    const end = [await finished(cluster, one), await finished(cluster, three)];
    const [x, y] = end.map((n, i) => (n - start[i]) / SECONDS);
    console.log(
      `weights 1:3, runs of 200 ms: ${x.toFixed(1)}/s and ${y.toFixed(1)}/s, 1:${(y / x).toFixed(2)}`,
    );
    await cancelWaiting(cluster);
    await idle(cluster);
  }
  if (PHASES.includes('many')) {
    const tenants = [];
    for (let i = 0; i < 50; i++) tenants.push(await cluster.tenant());
    await Promise.all(tenants.map((tenant) => flood(tenant, 100, 200)));
    const start = await Promise.all(tenants.map((tenant) => finished(cluster, tenant)));
    const began = performance.now();
    const { waits, wholes } = await probe(b, PROBES, 100);
    const seconds = (performance.now() - began) / 1000;
    const end = await Promise.all(tenants.map((tenant) => finished(cluster, tenant)));
    const rates = end.map((n, i) => (n - start[i]) / seconds);
    console.log(
      `50 floods of runs of 200 ms: a single task of another waits ${figures(waits)} ms, whole ${figures(wholes)} ms; ` +
        `runs/s of each of the 50 (p50/p99/max) ${figures(rates)}, least ${Math.min(...rates).toFixed(2)}`,
    );
    await cancelWaiting(cluster);
    await idle(cluster);
  }
  if (PHASES.includes('alone')) {
    for (const delayMs of DELAYS) {
      const a = await cluster.tenant();
      await flood(a, Math.min(FLOOD, 6000), delayMs);
      const start = await finished(cluster, a);
      await sleep(SECONDS * 1000);
      const rate = ((await finished(cluster, a)) - start) / SECONDS;
      const ideal = (2 * CONCURRENCY * 1000) / delayMs;
      console.log(
        `alone, runs of ${delayMs} ms: ${rate.toFixed(1)}/s (${ideal.toFixed(0)}/s if nothing else took time)`,
      );
      await cancelWaiting(cluster);
      await idle(cluster);
    }
  }
  console.log(
    `${cpus().length} cores, ${cpus()[0].model.trim()}, Node ${process.version}, ${DRIVER}, 2 x ${CONCURRENCY} slots`,
  );
} finally {
  await cluster.stop();
}
