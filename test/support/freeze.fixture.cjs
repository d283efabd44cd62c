// Loaded into a process of a test with NODE_OPTIONS=--require: SIGUSR2 makes its event loop stand still for ever.
const { isMainThread } = require('node:worker_threads');

const nobody = new Int32Array(new SharedArrayBuffer(4));

// It sleeps in small pieces: the event loop stands still without a core being busy, and the watchdog can still stop
// the main thread between two of them to read its stack.
function standStill() {
  for (;;) Atomics.wait(nobody, 0, 0, 5);
}

if (isMainThread) process.on('SIGUSR2', standStill);
