const { chmodSync, mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const vm = require('node:vm');
const { Cost } = require('./cost.js');
const { removeLeftovers } = require('./leftovers.js');
const { LegacyFakeTimers, ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');

/**
 * Fails tests from outside of them, at once: a process that a test needs has ended, and the test would wait for it
 * until its time is up. As long as the reason stands, later tests fail as well.
 */
class Failures {
  reasons = new Set();
  unreported = new Set();
  rejects = new Set();

  /** @returns how to take the reason back */
  add(error) {
    this.reasons.add(error);
    this.unreported.add(error);
    for (const reject of this.rejects) this.report(error, reject);
    return () => this.reasons.delete(error);
  }

  /** A test has reached its time limit. What it waits for may hold up every later test of its file, for as long. */
  addHang(testName) {
    const error = new Error(`Not run: "${testName}" of this file has reached its time limit.`);
    error.stack = error.message;
    this.reasons.add(error);
  }

  report(error, reject) {
    this.unreported.delete(error);
    reject(error);
  }

  /** A test, or what prepares it, that fails as soon as there is a reason. */
  guard(act) {
    const failures = this;
    return function (...args) {
      const result = failures.reasons.size === 0 ? act.apply(this, args) : new Promise(() => undefined);
      if (typeof result?.then !== 'function') return result;
      return new Promise((resolve, reject) => {
        failures.rejects.add(reject);
        for (const error of failures.reasons) failures.report(error, reject);
        result.then(resolve, reject);
      }).finally(() => failures.rejects.clear());
    };
  }

  /** Wraps a cleanup function. It runs to its end, then fails with the first error that no test has reported. */
  guardCleanUp(act) {
    const failures = this;
    return async function (...args) {
      await act.apply(this, args);
      const [error] = failures.unreported;
      failures.unreported.clear();
      if (error) throw error;
    };
  }
}

// A worker of Jest would continue with its file after the end of the run, as would the processes it has started. Not a listener
// of `disconnect`: one keeps the worker alive.
if (process.connected) setInterval(() => process.connected || process.exit(1), 1000).unref();

/** Whether a test has failed because it took too long. Jest throws a text. */
const isTimeout = (error) => /^Exceeded timeout of \d+ ms/.test(error?.message ?? error);

/** The member of the global object with the event handlers of Jest. It must outlive the context of a test file. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');

/** Stands for "the context of this process" where Jest asks for a context. */
const THIS_CONTEXT = {};

const { compileFunction } = vm;
/** What was compiled, by the file's path. */
const compiled = new Map();
vm.compileFunction = (code, parameters, options) => {
  if (options?.parsingContext !== THIS_CONTEXT) return compileFunction(code, parameters, options);
  const { filename } = options;
  const known = compiled.get(filename);
  if (known?.code === code && known.parameters === parameters.join()) return known.compiled;
  const isStatic = !code.includes('import(');
  const result = compileFunction(code, parameters, {
    ...options,
    parsingContext: undefined,
    // The callback references all modules of the test file. Kept with the compiled code, they would fill the memory.
    ...(isStatic && { importModuleDynamically: undefined }),
  });
  // A dynamic import belongs to the file of tests that was running when its code was compiled.
  if (isStatic) compiled.set(filename, { code, parameters: parameters.join(), compiled: result });
  return result;
};

/**
 * A folder for what a file of tests, and each process it starts, puts into the system's folder for temporary files: also for what
 * a killed process leaves there. Postgres, which may be another user, passes through it. The next run removes what a killed
 * run has left, by this name (services.ts).
 */
function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  chmodSync(folder, 0o711);
  return folder;
}

/**
 * Runs tests in the worker's own context rather than in one per file. Together with `runtime.js`, which takes packages
 * from the worker's own module cache, this loads Nest, Prisma and the SDKs once per worker: Jest's isolation of
 * them took more time than most files of tests. The project's own modules are evaluated anew for each file, and compiled
 * only once: in one context the compiled code can be called again.
 */
module.exports = class {
  constructor({ projectConfig }, { testPath }) {
    this.cost = new Cost(testPath);
    this.global = globalThis;
    this.console = globalThis.console;
    this.exit = process.exit;
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    this.fakeTimers = new LegacyFakeTimers({
      config: projectConfig,
      global: globalThis,
      moduleMocker: this.moduleMocker,
      timerConfig: { idToRef: (timer) => timer, refToId: (timer) => timer },
    });
    this.environmentVariables = { ...process.env };
    this.temporaryFolder = temporaryFolder();
    process.env.TMPDIR = this.temporaryFolder;
    process.env.TEST_PROJECT = projectConfig.displayName.name;
    // Node.js reads these certificates at each start, which takes 40 ms of CPU. At night npm may need them to reach its registry.
    if (process.env.TEST_PROJECT !== 'nightly') delete process.env.NODE_EXTRA_CA_CERTS;
    this.testTimeout = projectConfig.testTimeout;
    this.failures = new Failures();
    this.guarded = new WeakSet();
  }

  async setup() {
    globalThis.failTests = (error) => this.failures.add(error);
  }

  handleTestEvent({ name, test, hook, error }, state) {
    // Jest itself has only one limit for all projects.
    if (name === 'run_start') state.testTimeout = this.testTimeout;
    if (name === 'test_fn_failure' && isTimeout(error)) this.failures.addHang(test.name);
    const guarded = name === 'test_fn_start' ? test : name === 'hook_start' ? hook : undefined;
    if (!guarded || this.guarded.has(guarded)) return;
    this.guarded.add(guarded);
    const cleansUp = hook?.type === 'afterAll' || hook?.type === 'afterEach';
    guarded.fn = cleansUp ? this.failures.guardCleanUp(guarded.fn) : this.failures.guard(guarded.fn);
  }

  async teardown() {
    delete globalThis.failTests;
    // Otherwise each file would also call the handlers of all earlier files, which hold all of their modules.
    delete globalThis[EVENT_HANDLERS];
    this.fakeTimers.dispose();
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    removeLeftovers();
    globalThis.console = this.console;
    process.exit = this.exit;
    for (const name of Object.keys(process.env)) {
      if (!(name in this.environmentVariables)) delete process.env[name];
    }
    Object.assign(process.env, this.environmentVariables);
    // What still ends may write.
    rmSync(this.temporaryFolder, { recursive: true, force: true, maxRetries: 10 });
    this.cost.end();
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return THIS_CONTEXT;
  }
};
