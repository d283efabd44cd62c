const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks');
const performance = require('node:perf_hooks');

/** Functions that end the open resources of the current test file. */
const ends = new Map();

const { run } = AsyncLocalStorage.prototype;
/** In Node.js 20 each promise copies the values of all storages in use. Each file has one of Jest with the running test. */
AsyncLocalStorage.prototype.run = function (...args) {
  ends.set(this, () => this.disable());
  return run.apply(this, args);
};

const { monitorEventLoopDelay, PerformanceObserver } = performance;
const noTest = new AsyncResource('no test');
/** Of prom-client: a timer that fires every 10 ms. Node.js keeps a stopped one as well, and with it the test that has begun it. */
performance.monitorEventLoopDelay = (options) => {
  const histogram = noTest.runInAsyncScope(monitorEventLoopDelay, performance, options);
  ends.set(histogram, () => histogram.disable());
  return histogram;
};
/** Includes the observer of garbage collections of prom-client. */
performance.PerformanceObserver = class extends PerformanceObserver {
  observe(options) {
    ends.set(this, () => this.disconnect());
    super.observe(options);
  }
};

/** Jest keeps its data about a file in the global object, under a symbol of this name for each file, with all that tests have used. */
const STATE = 'JEST_STATE_SYMBOL';

/** It keeps the classes that it has looked at, and so all modules of a file. */
const NEST_TESTING = require.resolve('@nestjs/testing');

/** Ends and forgets what a file has left in the worker. Else each file would take more time and memory than the one before. */
function removeLeftovers() {
  for (const end of ends.values()) end();
  ends.clear();
  const nest = require.cache[NEST_TESTING]?.exports;
  nest?.Test.metadataScanner.cachedScannedPrototypes.clear();
  for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
    if (symbol.description === STATE) delete globalThis[symbol];
  }
}

module.exports = { removeLeftovers };
