import { parentPort, workerData } from 'node:worker_threads';
import { LeaseBeat } from './lease-beat.js';
import { readLeases } from './lease-table.js';
import { type ThreadData, type ThreadOrder } from './lease-keeper.js';

// Runs in a separate thread, so that an agent that blocks the main thread does not stop the heartbeats.

const port = parentPort;
if (!port) throw new Error('lease-thread is started by LeaseKeeper');
const { options, leases, pulse } = workerData as ThreadData;
const lastPulse = new BigInt64Array(pulse);
const NANOSECONDS = 1_000_000n;

const beat = new LeaseBeat(
  options,
  () => readLeases(leases),
  () => Number((process.hrtime.bigint() - Atomics.load(lastPulse, 0)) / NANOSECONDS),
  (message) => port.postMessage(message),
);

port.on('message', (order: ThreadOrder) => {
  if (order.type === 'room') leases.push(order.leases);
  // The thread ends when its connection and its port are closed.
  else void beat.close().finally(() => port.close());
});
