import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { DRIVERS } from '../support/index.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';

const AGENTS = join(__dirname, '../agents');
const MIB = 1024 * 1024;
/**
 * With the first driver, together more than any string of V8 (512 MiB): whatever reads a turn as a whole fails. With the other one
 * for the signals of large events alone.
 */
const CHUNKS = { first: 130, other: 10 };
const KIB = 1024;
/** Together they ask for 800 MiB of JSON, which is several times as much in memory. */
const READERS = 50;
/** Of a turn of 520 MiB and of one of 2 GiB, API and worker take up to 660 MiB; a process that held it would take twice as much. */
const MAX_MIB = 900;
const CHUNK_BYTES = 4 * MIB - 1024;

/** The most memory that a process has taken, in MiB. */
const peakOf = ({ pid }: { pid: number }): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

interface ArtifactPage {
  artifacts: { append: boolean; artifact: { parts: { text: string }[] } }[];
  next_cursor: string | null;
}

interface Note {
  artifactsUpToEvent: number;
  events: number;
  bytes: number;
}

describe.each(DRIVERS)('a turn that is larger than what a task shows, on %s', (driver) => {
  let stack: Stack;
  let token: string;
  let flood: RawCaller;
  let database: Client;
  const chunks = driver === DRIVERS[0] ? CHUNKS.first : CHUNKS.other;

  beforeAll(async () => {
    const env = { BATON_AGENTS_DIR: AGENTS, LEASE_MS: '10000', LEASE_HEARTBEAT_MS: '1000', SWEEP_MS: '200' };
    stack = await Stack.start({ driver, env });
    ({ token } = await stack.createTenant());
    flood = new RawCaller(stack.url(0, 'flood'), token);
    database = new Client({ connectionString: stack.database.url });
    await database.connect();
    await database.query(`SELECT set_config('baton.tenant', 'system', false)`);
  });
  afterAll(async () => {
    await database.end();
    await stack.stop();
  });

  /** Sequences of a log and its bytes, read slowly at first. */
  async function readLog(id: string, after: number): Promise<{ sequences: number[]; bytes: number }> {
    const url = `${stack.apis[0]!.url}/v1/tasks/${id}/events?since_seq=${after}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    const sequences: number[] = [];
    let bytes = 0;
    let rest = '';
    for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
      // What waits for a slow reader is in its socket and a bounded buffer; the rest stays in the log.
      if (bytes < 64 * MIB) await new Promise((resolve) => setTimeout(resolve, 1));
      bytes += piece.length;
      const text = rest + Buffer.from(piece).toString('latin1');
      for (const [, sequence] of text.matchAll(/^id: (\d+)\n/gm)) sequences.push(Number(sequence));
      rest = text.slice(text.lastIndexOf('\n') + 1).slice(0, 64);
    }
    return { sequences, bytes };
  }

  /** The numbers that the parts of its artifacts begin with, their bytes, and those of the largest answer. */
  async function readArtifacts(id: string) {
    const read = { parts: [] as number[], bytes: 0, largest: 0 };
    for (let cursor: string | null = ''; cursor !== null;) {
      const url: string = `${stack.apis[0]!.url}/v1/tasks/${id}/artifacts?cursor=${cursor}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      const text = await response.text();
      const page = JSON.parse(text) as ArtifactPage;
      for (const { artifact } of page.artifacts) {
        read.parts.push(...artifact.parts.map((part) => parseInt(part.text)));
        read.bytes += artifact.parts.reduce((sum, part) => sum + part.text.length, 0);
      }
      read.largest = Math.max(read.largest, text.length);
      cursor = page.next_cursor;
    }
    return read;
  }

  /** Many read it at the same time; whom there is no memory for comes again later, and no other tenant waits. */
  async function isReadByMany(id: string): Promise<void> {
    let answered = 0;
    const get = async (): Promise<string> => {
      const response = await fetch(flood.url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'a2a-version': '1.0',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id } }),
      });
      // Of 16 MiB each the beginning is enough.
      let text = '';
      for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
        if (text.length < KIB) text += Buffer.from(piece).toString('latin1');
      }
      answered += 1;
      if (text.startsWith('{"jsonrpc":"2.0","id":1,"result"')) return 'task';
      expect(text).toContain('"reason":"UNAVAILABLE"');
      expect(response.headers.get('retry-after')).toBe('5');
      return 'later';
    };
    const reads = Promise.all(Array.from({ length: READERS }, get));
    const other = new RawCaller(stack.url(0, 'echo'), (await stack.createTenant()).token);
    const { result } = await other.call('SendMessage', sendParams('hello'));
    expect(result!.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(answered).toBeLessThan(READERS);
    const outcomes = await reads;
    expect(outcomes).toContain('task');
    expect(peakOf(stack.apis[0]!)).toBeLessThan(MAX_MIB);
  }

  async function until<T>(read: () => Promise<T>, isIt: (value: T) => boolean): Promise<T> {
    for (;;) {
      const value = await read();
      if (isIt(value)) return value;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  const taskOf = async (id: string) => (await flood.call('GetTask', { id })).result!;
  const noteOf = (task: Record<string, { 'baton.truncated'?: Note } | undefined>): Note =>
    task.metadata!['baton.truncated']!;

  it('is streamed, read, listed, reclaimed after a kill and canceled', async () => {
    const said = sendParams('flood', {
      metadata: { chunks, bytes: CHUNK_BYTES, hold: true },
    }) as Record<string, object>;
    const sent = await flood.call('SendMessage', { ...said, configuration: { returnImmediately: true } });
    const id = sent.result!.task.id as string;

    // Everything is in the log: the task, its work, and the chunks.
    await until(
      async () => {
        const text =
          'SELECT last_sequence AS head, r.state, r.error FROM tasks t JOIN runs r ON r.task_id = t.id';
        const [row] = (await database.query<{ head: number; state: string; error: string }>(text)).rows;
        if (row!.state === 'failed') throw new Error(row!.error);
        return row!.head;
      },
      (head) => head >= chunks + 2,
    );
    const task = await taskOf(id);
    expect(task.status.state).toBe('TASK_STATE_WORKING');
    const shown = noteOf(task).artifactsUpToEvent;
    expect(task.artifacts[0].parts).toHaveLength(shown - 2);
    expect(noteOf(task).bytes).toBeGreaterThan(chunks * CHUNK_BYTES);

    if (driver === DRIVERS[0]) await isReadByMany(id);

    // Another attempt would begin the artifact anew.
    const read = await readArtifacts(id);
    expect(read.parts).toEqual(Array.from({ length: chunks }, (_, i) => i));
    expect(read.bytes).toBe(chunks * CHUNK_BYTES);
    expect(read.largest).toBeLessThan(CHUNK_BYTES + MIB);

    const [first] = stack.workers.splice(0);
    expect(peakOf(first!)).toBeLessThan(MAX_MIB);
    const attempt = async () => {
      const text = 'SELECT attempt FROM runs WHERE task_id = $1';
      return (await database.query<{ attempt: number }>(text, [id])).rows[0]!.attempt;
    };
    const before = await attempt();
    await first!.kill();
    await stack.addWorker();
    await until(attempt, (now) => now > before);

    const canceled = await flood.call('CancelTask', { id });
    expect(canceled.result!.status.state).toBe('TASK_STATE_CANCELED');
    const ended = await taskOf(id);
    expect(ended.status.state).toBe('TASK_STATE_CANCELED');
    const { result: listed } = await flood.call('ListTasks', { includeArtifacts: true });
    expect(listed!.tasks).toHaveLength(1);
    expect(noteOf(listed!.tasks[0]).events).toBe(noteOf(ended).events);

    const { sequences, bytes } = await readLog(id, 0);
    expect(sequences).toEqual(Array.from({ length: noteOf(ended).events }, (_, i) => i + 1));
    expect(bytes).toBeGreaterThan(chunks * CHUNK_BYTES);
    expect(peakOf(stack.apis[0]!)).toBeLessThan(MAX_MIB);
  });

  it('fails at its limit with its name, and its stream ends', async () => {
    const { slug, token: limited } = await stack.createTenant();
    await stack.baton('tenants', 'limits', slug, '--bytes-per-run', String(3 * MIB));
    const caller = new RawCaller(stack.url(0, 'flood'), limited);
    const metadata = { chunks: 10, bytes: MIB };
    let last: Record<string, { status?: { state: string } }> | undefined;
    for await (const { data } of caller.stream('SendStreamingMessage', sendParams('x', { metadata }))) {
      last = data.result;
    }
    expect(last?.statusUpdate?.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: {
        parts: [
          {
            text: `The agent sent more bytes than the limit bytesPerRun of this tenant allows, which is ${3 * MIB}`,
          },
        ],
      },
    });
  });
});
