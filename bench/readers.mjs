// npm run bench:readers: many readers of one task, and a reader that resumes a long log.
// READERS (1000): readers of one task, half of them over 1.0 and half over 0.3. CHUNK_MS (1500): pause between its events. EVENTS (10000): length of the log. ROUNDS (5).
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { circumstances, printTable } from './report.mjs';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { startBaton } from './servers.mjs';

const READERS = numberSetting('READERS', 1_000);
const EVENTS = numberSetting('EVENTS', 10_000);
const ROUNDS = numberSetting('ROUNDS', 5);
const AT_ONCE = 50;
const CHUNKS = 40;
// All readers must be there before the last piece.
const CHUNK_MS = numberSetting('CHUNK_MS', 1_500);
const MB = 1024 * 1024;
const VERSIONS = {
  '1.0': { subscribe: 'SubscribeToTask' },
  0.3: { subscribe: 'tasks/resubscribe' },
};

const baton = await startBaton({ workers: 1 });
const { url, headers } = baton.target;

/** One request; the response as soon as its headers are there. */
function post(method, params, more = {}) {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers: { ...headers, ...more }, agent: false };
    const request = http.request(url, options, (response) => resolve(response.setEncoding('utf8')));
    request.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  });
}

/** A task whose agent sends `chunks` pieces. */
async function start(chunks, delayMs) {
  const message = {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text: 'talk' }],
    metadata: { echo: { chunks, delayMs } },
  };
  let text = '';
  const params = { message, configuration: { returnImmediately: true } };
  for await (const piece of await post('SendMessage', params)) text += piece;
  return JSON.parse(text).result.task.id;
}

async function rss() {
  const text = await (await fetch(baton.metricsUrl)).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1]) / MB;
}

/** Reads a stream to its end. @param onFrame called with the sequence of each frame */
async function read(response, onFrame) {
  let rest = '';
  for await (const piece of response) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines) if (line.startsWith('id: ')) onFrame(Number(line.slice(4)));
  }
}

/** For each event that all readers got live: when the first and the last of them had it. */
async function fanOut() {
  const id = await start(CHUNKS, CHUNK_MS);
  const arrivals = new Map();
  const readings = [];
  const open = async () => {
    while (readings.length < READERS) {
      const version = readings.length % 2 ? '0.3' : '1.0';
      const place = readings.push(undefined) - 1;
      const response = await post(VERSIONS[version].subscribe, { id }, { 'a2a-version': version });
      readings[place] = read(response, (sequence) => {
        const at = performance.now();
        const seen = arrivals.get(sequence) ?? { count: 0, first: at, last: at };
        arrivals.set(sequence, { ...seen, count: seen.count + 1, last: at });
      });
    }
  };
  const opened = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, open));
  const all = performance.now();
  await Promise.all(readings);
  const live = [...arrivals.values()].filter(({ count, first }) => count === READERS && first > all);
  const spreads = live.map(({ first, last }) => last - first).sort((a, b) => a - b);
  return { openMs: all - opened, events: live.length, p50: quantile(spreads, 0.5), max: spreads.at(-1) };
}

/** How long a reader takes that resumes after the first event of a long log that has ended. */
async function resume() {
  const id = await start(EVENTS, 0);
  await read(await post('SubscribeToTask', { id }), () => undefined);
  const rows = [];
  for (const version of Object.keys(VERSIONS)) {
    const times = [];
    let frames = 0;
    const before = await rss();
    for (let round = 0; round <= ROUNDS; round++) {
      const began = performance.now();
      frames = 0;
      const more = { 'a2a-version': version, 'last-event-id': '1' };
      await read(await post(VERSIONS[version].subscribe, { id }, more), () => (frames += 1));
      times.push(performance.now() - began);
    }
    // The first one warms up.
    const sorted = times.slice(1).sort((a, b) => a - b);
    rows.push([version, frames, quantile(sorted, 0.5).toFixed(0), ((await rss()) - before).toFixed(0)]);
  }
  return rows;
}

try {
  console.log(circumstances(`${READERS} readers of one task, and a log of ${EVENTS} events`));
  const { openMs, events, p50, max } = await fanOut();
  const row = [READERS, openMs, events, p50, max].map((value) => value?.toFixed(0));
  printTable(
    'Readers of one task',
    ['readers', 'opened in ms', 'events', 'first to last reader, p50 ms', 'max ms'],
    [row],
  );
  printTable('A long log, resumed', ['version', 'frames', 'median ms', 'memory MB'], await resume());
} finally {
  await baton.stop();
}
