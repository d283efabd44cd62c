// npm run bench:streams: the cost of open streams in one API process.
// STREAMS (5000): idle streams, first each of its own task, then all of one task. READERS (200): readers that stop reading.
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { startBaton } from './servers.mjs';

const STREAMS = numberSetting('STREAMS', 5_000);
const READERS = numberSetting('READERS', 200);
const AT_ONCE = 50;
const SILENT = { chunks: 2, delayMs: 600_000 };
const MB = 1024 * 1024;

const baton = await startBaton({ workers: 1, env: { MAX_CONNECTIONS_PER_ADDRESS: '10000' } });
const { url, headers } = baton.target;

/** One request; the response as soon as its headers are there. */
function post(method, params, more = {}) {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers: { ...headers, ...more }, agent: false };
    const request = http.request(url, options, resolve);
    request.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  });
}

async function call(method, params) {
  let text = '';
  for await (const chunk of (await post(method, params)).setEncoding('utf8')) text += chunk;
  return JSON.parse(text).result;
}

const message = (echo) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'talk' }], metadata: { echo } },
});

/** A metric of the API process. */
async function metric(name) {
  const text = await (await fetch(baton.metricsUrl)).text();
  return Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]);
}
const rss = async () => (await metric('process_resident_memory_bytes')) / MB;

/** Open so many streams, a few at a time; each counts its heartbeats. */
async function openStreams(count, open) {
  const streams = [];
  const worker = async () => {
    while (streams.length < count) {
      const stream = { beats: 0, response: undefined, ended: false };
      streams.push(stream);
      stream.response = await open();
      stream.response.setEncoding('utf8').on('data', (text) => {
        if (text.includes(': heartbeat')) stream.beats += 1;
      });
      stream.response.on('close', () => (stream.ended = true)).on('error', () => undefined);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return streams;
}

async function until(condition, limitMs) {
  const end = performance.now() + limitMs;
  while (performance.now() < end && !(await condition()))
    await new Promise((resolve) => setTimeout(resolve, 200));
}

async function idle(name, open, taskId) {
  const before = await rss();
  const started = performance.now();
  const streams = await openStreams(STREAMS, open);
  const opened = performance.now() - started;
  await until(() => streams.every(({ beats }) => beats > 0), 90_000);
  const after = await rss();
  const times = [];
  for (let i = 0; i < 200; i += 1) {
    const start = performance.now();
    await call('GetTask', { id: taskId });
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const row = {
    open: await metric('baton_open_streams'),
    'closed by us': streams.filter(({ ended }) => ended).length,
    'got heartbeats': streams.filter(({ beats }) => beats > 0).length,
    'opened in s': (opened / 1000).toFixed(1),
    'RSS MB': `${before.toFixed(0)} → ${after.toFixed(0)}`,
    'KB a stream': (((after - before) * 1024) / STREAMS).toFixed(1),
    'GetTask p50/p99 ms': `${quantile(times, 0.5).toFixed(1)} / ${quantile(times, 0.99).toFixed(1)}`,
  };
  for (const { response } of streams) response.destroy();
  await until(async () => (await metric('baton_open_streams')) === 0, 30_000);
  return [name, { ...row, 'left over': await metric('baton_open_streams') }];
}

async function stalled() {
  const { task } = await call('SendMessage', message({ chunks: 1_000, chunkBytes: 20_000 }));
  const before = await rss();
  let peak = before;
  const streams = await openStreams(READERS, async () => {
    const response = await post('SubscribeToTask', { id: task.id }, { 'last-event-id': '0' });
    response.pause();
    response.socket.pause();
    return response;
  });
  for (const { response } of streams) response.pause();
  await until(async () => {
    peak = Math.max(peak, await rss());
    return (await metric('baton_open_streams')) === 0;
  }, 120_000);
  for (const { response } of streams) response.destroy();
  const left = await metric('baton_open_streams');
  return {
    readers: READERS,
    'RSS MB': `${before.toFixed(0)} → ${peak.toFixed(0)} (peak)`,
    'still open': left,
  };
}

const rows = [];
try {
  const { task } = await call('SendMessage', { ...message({}) });
  await stalled();
  // Before the idle streams: their tasks take all slots for ten minutes.
  const slow = await stalled();
  rows.push(await idle('each of its own task', () => post('SendStreamingMessage', message(SILENT)), task.id));
  const lasting = await call('SendMessage', {
    ...message(SILENT),
    configuration: { returnImmediately: true },
  });
  rows.push(
    await idle('all of one task', () => post('SubscribeToTask', { id: lasting.task.id }), lasting.task.id),
  );
  console.log(`\n${STREAMS} idle streams on one API process, Node ${process.version}`);
  console.table(Object.fromEntries(rows));
  console.log('readers that stop reading a log of 20 MB');
  console.table([slow]);
} finally {
  await baton.stop();
}
