// npm run bench:ten-million: does Baton stay as fast with ten million events? Two Batons run side by side, one almost empty
// and one full, and are measured in turns. Then the full one deletes a million events under load.
// ROUNDS (5), CALLS per round (30), TASKS (200000) of EVENTS (50) each, HUGE (1000000), SECONDS (20) of each load.
import { cpus } from 'node:os';
import { Caller } from './caller.mjs';
import { connect, fillHuge, fillTenant, tenantsOf } from './fill.mjs';
import { oneByOne, quantile, range } from './load.mjs';
import { measureRetention } from './retention-load.mjs';
import { scenarios } from './single-calls.mjs';
import { startBaton } from './servers.mjs';

const number = (name, fallback) => Number(process.env[name] ?? fallback);
const ROUNDS = number('ROUNDS', 5);
const CALLS = number('CALLS', 30);
const TASKS = number('TASKS', 200_000);
const EVENTS = number('EVENTS', 50);
const HUGE = number('HUGE', 1_000_000);
const OTHERS = 5;

/** Starts a Baton with so many tasks, three quarters of them the demo tenant's, and one task with a huge log. */
async function prepare(name, tasks, huge) {
  const baton = await startBaton({ workers: 1, env: { RETENTION_SWEEP_MS: '1000' } });
  const client = await connect(baton.databaseUrl, baton.home);
  const [demo, ...others] = await tenantsOf(client, OTHERS);
  const note = (events) =>
    process.stderr.write(`${name}: ${events.toLocaleString('en')} events of a tenant\n`);
  await fillTenant(client, demo, Math.ceil(tasks * 0.75), EVENTS, note);
  for (const tenant of others)
    await fillTenant(client, tenant, Math.ceil((tasks * 0.25) / OTHERS), EVENTS, note);
  const hugeTask = await fillHuge(client, demo, huge, note);
  await client.query('VACUUM (ANALYZE)');
  await client.query('CHECKPOINT').catch(() => undefined); // Only where the role may.
  const caller = new Caller(baton.url, baton.token);
  return { name, baton, client, caller, demo, others, events: EVENTS, hugeTask, huge };
}

async function measure(sides) {
  const results = [];
  const listed = await Promise.all(sides.map(scenarios));
  for (const [s, { name }] of listed[0].entries()) {
    const values = sides.map(() => []);
    for (let round = -1; round < ROUNDS; round++) {
      for (const [i, side] of listed.entries()) {
        const { call, before } = side[s];
        await before?.(CALLS);
        const p50 = quantile(await oneByOne(call, CALLS), 0.5);
        if (round >= 0) values[i].push(p50);
      }
    }
    results.push({ name, values });
    process.stderr.write(`${name}\n`);
  }
  return results;
}

const show = ({ min, median, max }, digits = 1) =>
  `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;

const sides = [await prepare('small', 500, 1_000), await prepare('full', TASKS, HUGE)];
try {
  const results = await measure(sides);
  console.log(
    `\n${cpus().length} cores, ${cpus()[0].model.trim()}, Node ${process.version}, ${ROUNDS} rounds of ${CALLS} calls, ` +
      `${TASKS.toLocaleString('en')} tasks of ${EVENTS} events and one of ${HUGE.toLocaleString('en')}; p50 in ms, median (min–max)\n`,
  );
  console.table(
    Object.fromEntries(
      results.map(({ name, values: [small, full] }) => {
        const ratio = full.map((value, round) => value / small[round]);
        return [
          name,
          { 'almost empty': show(range(small)), full: show(range(full)), ratio: show(range(ratio), 2) },
        ];
      }),
    ),
  );
  await measureRetention(sides[1], number('SECONDS', 20));
} finally {
  for (const { baton, client, caller } of sides) {
    caller.close();
    await client.end();
    await baton.stop();
  }
}
