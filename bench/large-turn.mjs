// npm run bench:large-turn -- [--mib 2048] [--driver redis|postgres] [--chunk-mib 4]
// One turn of this size on `npm start` with two workers: send, stream to a slow reader, read and list during and after the
// turn, read all artifacts, kill the worker, reclaim the run, cancel the task. Prints the duration of each step and the peak
// memory of each kind of process.
import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect } from './fill.mjs';
import { startBaton } from './servers.mjs';

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const { findRedisBinary } = createRequire(import.meta.url)(path('dist/apps/local/src/services/index.js'));
const MIB = 1_048_576;
const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '2048' },
    driver: { type: 'string', default: findRedisBinary() ? 'redis' : 'postgres' },
    'chunk-mib': { type: 'string', default: '4' },
  },
});
const { driver } = values;
const chunkBytes = Number(values['chunk-mib']) * MIB - 1024;
const chunks = Math.ceil((Number(values.mib) * MIB) / chunkBytes);
/** What the slow reader takes of the stream in a second. */
const SLOW_BYTES = 48 * MIB;

const seconds = (since) => (performance.now() - since) / 1000;

/** The most memory that processes of each kind have had, as far as they are below this process. */
class Peaks {
  of = {};
  #timer = setInterval(() => this.#look(), 200);

  /** Ids of the processes of a kind that are alive. */
  pids(kind) {
    return this.#processes().flatMap((each) => (each.kind === kind ? [each.pid] : []));
  }

  stop() {
    clearInterval(this.#timer);
  }

  #look() {
    for (const { kind, pid } of this.#processes()) {
      const kib = Number(/VmHWM:\s+(\d+) kB/.exec(this.#read(pid, 'status'))?.[1] ?? 0);
      this.of[kind] = Math.max(this.of[kind] ?? 0, Math.round(kib / 1024));
    }
  }

  #processes() {
    const parents = new Map();
    for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
      const parent = Number(/\) \S (\d+)/.exec(this.#read(name, 'stat'))?.[1] ?? 0);
      parents.set(Number(name), parent);
    }
    const isOurs = (pid) => pid === process.pid || (parents.has(pid) && isOurs(parents.get(pid)));
    return [...parents.keys()].filter(isOurs).flatMap((pid) => {
      const kind = /apps\/(api|worker)\/|(executor)-main/.exec(this.#read(pid, 'cmdline'));
      return kind ? [{ pid, kind: kind[1] ?? kind[2] }] : [];
    });
  }

  #read(pid, file) {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'latin1');
    } catch {
      return '';
    }
  }
}

const baton = await startBaton({
  workers: 2,
  env: {
    BATON_AGENTS_DIR: path('test/agents'),
    LIMIT_BYTES_PER_RUN: String(64 * 1024 * MIB),
    LIMIT_BYTES_PER_TASK: String(128 * 1024 * MIB),
    LIMIT_EVENT_BYTES: String(2 * chunkBytes),
    MAX_EVENT_BYTES: String(chunkBytes + MIB),
    ...(driver === 'postgres' && { PATH: '', REDIS_URL: '' }),
  },
});
const database = await connect(baton.databaseUrl, baton.home);
const peaks = new Peaks();
const rows = [];
const authorization = { authorization: `Bearer ${baton.token}` };

/** Do it and note how long it took. */
async function timed(what, work) {
  const begin = performance.now();
  const note = await work();
  rows.push({ what, seconds: Number(seconds(begin).toFixed(2)), note: note ?? '' });
}

async function call(method, params) {
  const response = await fetch(`${baton.url}/agents/flood`, {
    method: 'POST',
    headers: { ...authorization, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
  return result;
}

const one = async (sql) => (await database.query(sql)).rows[0];

async function until(sql, isIt) {
  while (!isIt(await one(sql))) await sleep(100);
}

/** Reads the log as slowly as that, and sees that it is whole. */
async function follow(id, events) {
  const response = await fetch(`${baton.url}/v1/tasks/${id}/events?since_seq=0`, {
    headers: authorization,
  });
  const begin = performance.now();
  let [bytes, last, rest] = [0, 0, ''];
  for await (const piece of response.body) {
    bytes += piece.length;
    const text = rest + Buffer.from(piece).toString('latin1');
    for (const [, sequence] of text.matchAll(/^id: (\d+)\n/gm)) {
      if (Number(sequence) !== last + 1) throw new Error(`event ${sequence} came after ${last}`);
      last = Number(sequence);
    }
    if (last >= events && bytes > chunks * chunkBytes) break;
    rest = text.slice(text.lastIndexOf('\n') + 1).slice(0, 64);
    const ahead = bytes / SLOW_BYTES - seconds(begin);
    if (ahead > 0) await sleep(ahead * 1000);
  }
  return `${Math.round(bytes / MIB)} MiB, ${last} events, none missing`;
}

async function readArtifacts(id) {
  let [pages, parts] = [0, 0];
  for (let cursor = ''; cursor !== null; pages++) {
    const response = await fetch(`${baton.url}/v1/tasks/${id}/artifacts?cursor=${cursor}`, {
      headers: authorization,
    });
    const page = await response.json();
    for (const { artifact } of page.artifacts) {
      for (const part of artifact.parts) if (parseInt(part.text) !== parts++) throw new Error('out of order');
    }
    cursor = page.next_cursor;
  }
  if (parts !== chunks) throw new Error(`${parts} parts of ${chunks}`);
  return `${pages} pages`;
}

const noteOf = ({ metadata }) => {
  const note = metadata['baton.truncated'];
  return `${Math.round(note.bytes / MIB)} MiB in ${note.events} events, artifacts up to event ${note.artifactsUpToEvent}`;
};

try {
  const message = {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text: 'flood' }],
    metadata: { chunks, bytes: chunkBytes, hold: true },
  };
  const begin = performance.now();
  const { task } = await call('SendMessage', { message, configuration: { returnImmediately: true } });
  const { id } = task;
  const events = chunks + 2;
  const slow = timed('stream, slow reader (from the start)', () => follow(id, events));
  const head = 'SELECT last_sequence AS value FROM tasks';
  await until(head, ({ value }) => value >= events / 2);
  await timed('GetTask while it is written', async () => noteOf(await call('GetTask', { id })));
  await until(head, ({ value }) => value >= events);
  rows.push({
    what: 'the turn is in the log',
    seconds: Number(seconds(begin).toFixed(2)),
    note: `${chunks} events`,
  });
  await slow;
  await timed('GetTask', async () => noteOf(await call('GetTask', { id })));
  await timed('ListTasks', async () =>
    noteOf((await call('ListTasks', { includeArtifacts: true })).tasks[0]),
  );
  await timed('GET /v1/tasks/{id}/artifacts, all pages', () => readArtifacts(id));
  await timed('kill -9 of the worker, claimed again', async () => {
    const { worker } = await one(`SELECT worker_id AS worker FROM runs`);
    for (const pid of peaks.pids('worker')) {
      if (worker.startsWith(`${pid}-`)) process.kill(pid, 'SIGKILL');
    }
    await until('SELECT attempt FROM runs', ({ attempt }) => attempt > 1);
  });
  await timed('CancelTask', async () => (await call('CancelTask', { id })).status.state);
} finally {
  peaks.stop();
  await database.end();
  await baton.stop();
}
console.log(`\nA turn of ${values.mib} MiB in chunks of ${values['chunk-mib']} MiB, ${driver}`);
console.table(rows);
console.log('Peak memory of each process, MiB:', peaks.of);
