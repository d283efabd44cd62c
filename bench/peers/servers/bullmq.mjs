// What teams write by hand: an HTTP server that adds a job and waits for its end, and a worker. The three steps are kept in the data of
// the job, as the documentation of BullMQ shows it (process-step jobs), chunks in a Redis stream. Tells the parent process its port.
import { Queue, QueueEvents, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { listen } from './listen.mjs';
import { tick } from './tick.mjs';

const { hostname: host, port, username, password } = new URL(process.env.REDIS_URL);
const connection = { host, port: Number(port), username, password };
const redis = new Redis(connection);
const STEPS = 3;

const work = {
  send: async (job) => job.data.text,
  steps: async (job) => {
    for (let n = job.data.step ?? 0; n < STEPS; n++)
      await job.updateData({ ...job.data, text: `${job.data.text} ${n + 1}`, step: n + 1 });
    return job.data.text;
  },
  stream: async (job) => {
    for (let i = 0; i < Number(job.data.text); i++)
      await redis.xadd(`chunks:${job.id}`, '*', 'chunk', 'chunk');
    await redis.xadd(`chunks:${job.id}`, '*', 'end', '1');
  },
  ticker: async (job) => {
    for (let n = job.data.step ?? 0; ; n++) {
      await tick(job.data.text, n);
      await job.updateData({ ...job.data, step: n + 1 });
    }
  },
};

if (process.argv[2] === 'worker') {
  const worker = new Worker('bench', (job) => work[job.name](job), { connection, concurrency: 100 });
  await worker.waitUntilReady();
  process.send({ port: 0 });
  process.once('disconnect', () => process.exit());
} else {
  const queue = new Queue('bench', { connection });
  const events = new QueueEvents('bench', { connection });
  const options = { removeOnComplete: 1000 };
  // One listener for each call that waits.
  for (const emitter of [queue, events]) emitter.setMaxListeners(0);
  await events.waitUntilReady();
  const result = async (name, text) => (await queue.add(name, { text }, options)).waitUntilFinished(events);
  const pool = [];
  /** A blocked read needs a connection of its own. */
  const reader = () => pool.pop() ?? redis.duplicate();
  await listen({
    send: (text) => result('send', text),
    steps: (text) => result('steps', text),
    sleep: async (ms) => void (await queue.add('send', { text: '' }, { ...options, delay: Number(ms) })),
    ticker: async (text) => void (await queue.add('ticker', { text }, options)),
    stream: async (chunks, write) => {
      const { id } = await queue.add('stream', { text: chunks }, options);
      const client = reader();
      for (let last = '0', ended = false; !ended;) {
        const [[, entries]] = (await client.xread('BLOCK', 0, 'STREAMS', `chunks:${id}`, last)) ?? [['', []]];
        for (const [entry, [kind, value]] of entries) {
          last = entry;
          if (kind === 'end') ended = true;
          else write(value);
        }
      }
      pool.push(client);
      await redis.del(`chunks:${id}`);
    },
  });
}
