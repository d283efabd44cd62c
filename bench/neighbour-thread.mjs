// The neighbour of bench/neighbours.mjs with its servers, on a thread of its own: an attacker that keeps its own thread busy does not
// delay it.
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { startFriend } from './attacks/friend.mjs';
import { Target } from './client.mjs';

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const require = createRequire(import.meta.url);
require(path('test/support/load-typescript.js'));
const { NameServer } = require(path('test/support/name-server.ts'));

const MIB = 1_048_576;
/** How often the memory of the API is read. */
const WATCH_MS = 250;
const MAX_ERRORS = 3;

const now = () => performance.timeOrigin + performance.now();

/** Ms from the end of each task until its webhook got the event, since the last beginning. */
let hook = [];

/**
 * Calls both agents until `isOver`.
 * @returns the sorted ms of blocking calls and the failed ones, by agent; maxima of the API: memory in MiB, p99 delay of the event loop,
 * statements that waited for a connection to Postgres
 */
async function call({ url, token, metricsUrl, callers }, isOver) {
  const target = (agent) => new Target(agent, `${url}/agents/${agent}`, { authorization: `Bearer ${token}` });
  const figures = { megabytes: 0, lagMs: 0, awaited: 0 };
  for (const name of ['echo', 'friend']) figures[name] = { times: [], failed: 0, errors: [] };
  hook = [];
  const caller = async (agent, of) => {
    while (!isOver()) {
      const start = performance.now();
      await agent.send('hello').catch((error) => {
        of.failed += 1;
        if (of.errors.length < MAX_ERRORS) of.errors.push(String(error).slice(0, 300));
      });
      of.times.push(performance.now() - start);
    }
  };
  const watch = async () => {
    while (!isOver()) {
      const text = await fetch(metricsUrl).then(
        (answer) => answer.text(),
        () => '',
      );
      const noteMax = (name, key, unit = 1) => {
        const value = Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1] ?? 0);
        figures[key] = Math.max(figures[key], value / unit);
      };
      noteMax('process_resident_memory_bytes', 'megabytes', MIB);
      noteMax('nodejs_eventloop_lag_p99_seconds', 'lagMs', 0.001);
      noteMax('baton_database_connections{state="awaited"}', 'awaited');
      await sleep(WATCH_MS);
    }
  };
  const [echo, friend] = ['echo', 'friend'].map(target);
  const ofEcho = Array.from({ length: callers }, () => caller(echo, figures.echo));
  await Promise.all([...ofEcho, caller(friend, figures.friend), watch()]);
  for (const agent of [echo, friend]) agent.close();
  for (const times of [figures.echo.times, figures.friend.times, hook]) times.sort((a, b) => a - b);
  return { ...figures, hook };
}

let baton;
let over = false;
parentPort.on('message', (message) => {
  over = message === 'end';
  if (typeof message === 'object') baton = message;
  if (message === 'begin') void call(baton, () => over).then((figures) => parentPort.postMessage(figures));
});
const friendPort = await startFriend(({ timestamp }) => hook.push(now() - Date.parse(timestamp)));
const nameServer = await new NameServer({ [workerData.friend]: { a: ['127.0.0.1'] }, '*': 'silent' }).start();
parentPort.postMessage({ friendPort, dns: nameServer.address });
