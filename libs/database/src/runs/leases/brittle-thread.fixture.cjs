// A thread that keeps nothing: it tells what it is given, dies of an attempt 13, and says how old the pulse is as
// soon as that is less than a second (attempt 200) or more (attempt 201). Then it also
// wakes whoever waits for `noticed`.
const { getEnvironmentData, parentPort, workerData } = require('node:worker_threads');

const pulse = new BigInt64Array(workerData.pulse);
const noticed = getEnvironmentData('noticed');
const age = () => Number((process.hrtime.bigint() - Atomics.load(pulse, 0)) / 1_000_000n);

parentPort.on('message', ({ type, key }) => {
  if (type === 'close') return parentPort.close();
  if (type !== 'hold') return;
  const { runId, attempt } = key;
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
});
