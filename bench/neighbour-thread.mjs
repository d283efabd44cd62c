// The neighbour of bench/neighbours.mjs, on a thread of its own: an attacker that keeps its own thread busy does not delay it.
import { parentPort, workerData } from 'node:worker_threads';
import { Target } from './client.mjs';

const MIB = 1_048_576;
/** How often the memory of the API is read. */
const WATCH_MS = 250;

const { url, token, metricsUrl, callers } = workerData;
const target = (agent) => new Target(agent, `${url}/agents/${agent}`, { authorization: `Bearer ${token}` });
const [echo, friend] = ['echo', 'friend'].map(target);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Calls both agents until `isOver`: ms of each blocking call, sorted; how many failed; memory of the API in MiB. */
async function call(isOver) {
  const figures = { echo: { times: [], failed: 0 }, friend: { times: [], failed: 0 }, megabytes: 0 };
  const caller = async (agent, of) => {
    while (!isOver()) {
      const start = performance.now();
      await agent.send('hello').catch(() => (of.failed += 1));
      of.times.push(performance.now() - start);
    }
  };
  const watch = async () => {
    while (!isOver()) {
      const text = await fetch(metricsUrl).then(
        (answer) => answer.text(),
        () => '',
      );
      const bytes = Number(/^process_resident_memory_bytes (.*)$/m.exec(text)?.[1] ?? 0);
      figures.megabytes = Math.max(figures.megabytes, bytes / MIB);
      await sleep(WATCH_MS);
    }
  };
  const ofEcho = Array.from({ length: callers }, () => caller(echo, figures.echo));
  await Promise.all([...ofEcho, caller(friend, figures.friend), watch()]);
  for (const { times } of [figures.echo, figures.friend]) times.sort((a, b) => a - b);
  return figures;
}

let over = false;
parentPort.on('message', (word) => {
  over = word === 'end';
  if (word === 'begin') void call(() => over).then((figures) => parentPort.postMessage(figures));
});
