// npm run bench:ten-million: does Baton stay as fast with ten million events? Two Batons run side by side, one almost empty
// and one full, and are measured in turns. Then the full one deletes a million events under load.
// ROUNDS (5), CALLS per round (30), TASKS (200000) of EVENTS (50) each, HUGE (1000000), SECONDS (20) of each load.
import { Caller } from './caller.mjs';
import { connect, fillHuge, fillTenant, tenantsOf } from './fill.mjs';
import { circumstances } from './report.mjs';
import { measureRetention } from './retention-load.mjs';
import { compared, inTurns } from './single-calls.mjs';
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

const sides = [await prepare('small', 500, 1_000), await prepare('full', TASKS, HUGE)];
try {
  const results = await inTurns(sides, ROUNDS, CALLS);
  console.log(
    circumstances(
      `${ROUNDS} rounds of ${CALLS} calls, ${TASKS.toLocaleString('en')} tasks of ${EVENTS} events and one of ` +
        `${HUGE.toLocaleString('en')}; p50 in ms, median (min–max).`,
    ),
  );
  console.table(compared(results));
  await measureRetention(sides[1], sides[1].others.slice(0, 2), number('SECONDS', 20));
} finally {
  for (const { baton, client, caller } of sides) {
    caller.close();
    await client.end();
    await baton.stop();
  }
}
