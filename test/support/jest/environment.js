const vm = require('node:vm');
const { LegacyFakeTimers, ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');

/** Stands for "the context of this process" where Jest asks for a context. */
const THIS_CONTEXT = {};

const { compileFunction } = vm;
vm.compileFunction = (code, parameters, options) =>
  options?.parsingContext === THIS_CONTEXT
    ? compileFunction(code, parameters, { ...options, parsingContext: undefined })
    : compileFunction(code, parameters, options);

/**
 * Runs tests in the worker's own context rather than in one per file. Together with `runtime.js`, which takes packages
 * from the worker's own module cache, this loads Nest, Prisma and the SDKs once per worker: Jest's isolation of
 * them took more time than most files of tests. The project's own modules stay apart for each file.
 */
module.exports = class {
  constructor({ projectConfig }) {
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
  }

  async setup() {}

  async teardown() {
    this.fakeTimers.dispose();
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    globalThis.console = this.console;
    process.exit = this.exit;
    for (const name of Object.keys(process.env)) {
      if (!(name in this.environmentVariables)) delete process.env[name];
    }
    Object.assign(process.env, this.environmentVariables);
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return THIS_CONTEXT;
  }
};
