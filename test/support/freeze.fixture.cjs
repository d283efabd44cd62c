// Loaded into a process of a test with NODE_OPTIONS=--require: SIGUSR2 makes its event loop stand still for ever.
const { isMainThread } = require('node:worker_threads');

function standStill() {
  for (;;);
}

if (isMainThread) process.on('SIGUSR2', standStill);
