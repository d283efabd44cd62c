// A thread that extends no lease: it reports the leases that it finds, dies of an attempt 13, and reports the age of the pulse as
// soon as that is less than a second (attempt 200) or more (attempt 201). Then it also
// wakes the test, which waits for `noticed`.
const { getEnvironmentData, parentPort, workerData } = require('node:worker_threads');

const pulse = new BigInt64Array(workerData.pulse);
const noticed = getEnvironmentData('noticed');
const age = () => Number((process.hrtime.bigint() - Atomics.load(pulse, 0)) / 1_000_000n);

// As LeaseTable writes it: mark, attempt, length, text.
const LEASE_BYTES = 96;
const seen = new Set();
const timer = setInterval(() => {
  for (const buffer of workerData.leases) {
    for (let at = 0; at < buffer.byteLength; at += LEASE_BYTES) {
      const [mark, attempt, length] = new Int32Array(buffer, at, 3);
      if (mark === 0 || seen.has(mark)) continue;
      seen.add(mark);
      found({
        attempt,
        runId: Buffer.from(buffer, at + 12, length)
          .toString('latin1')
          .split(' ')[1],
      });
    }
  }
}, 5);
parentPort.on('message', ({ type, leases }) => {
  if (type === 'room') return workerData.leases.push(leases);
  clearInterval(timer);
  parentPort.close();
});

function found({ runId, attempt }) {
  if (attempt === 13) throw new Error('unlucky');
  if (attempt < 200) return parentPort.postMessage({ type: 'lost', leases: [{ runId, attempt }] });
  const look = () => {
    const forMs = age();
    if (forMs < 1_000 !== (attempt === 200)) return setTimeout(look, 10);
    parentPort.postMessage({ type: 'stalled', forMs });
    if (attempt !== 201) return;
    Atomics.store(noticed, 0, 1);
    Atomics.notify(noticed, 0);
  };
  look();
}
