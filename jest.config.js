// Four projects: `unit` (pure and fast), `integration` (one library on real Postgres and Redis), `e2e`, and `nightly`
// (`npm run test:nightly`), which has what takes too long for every change.

const { availableParallelism } = require('node:os');

// Of the tests and of all processes that they start. Postgres has another one (test/support/postgres.ts).
process.env.TZ = 'Asia/Kolkata';

/** @type {import('jest').Config} */
const base = {
  rootDir: __dirname,
  testEnvironment: '<rootDir>/test/support/jest/environment.js',
  // Tests wait for events, however slow the machine. This bound ends a test or a hook that hangs, so no test has its own. After such a
  // test the others of its file fail at once (environment.js). The bound is longer than helpers wait for a process
  // (baton-process.ts), which then say what the process has logged.
  testTimeout: 15 * 60_000,
  runtime: '<rootDir>/test/support/jest/runtime.js',
  transform: {
    '^.+\\.[cm]?[jt]s$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true, dynamicImport: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
          keepClassNames: true,
        },
        module: { type: 'commonjs' },
      },
    ],
  },
  // Packages are shared and never compiled (test/support/jest/runtime.js), but for this ES module.
  transformIgnorePatterns: ['/node_modules/(?!@prisma/schema-engine-wasm/)'],
  moduleNameMapper: {
    '^piscina$': '<rootDir>/test/support/jest/piscina.js',
    '^@baton/([^/]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.baton/'],
};

/** Postgres and Redis for one run: see test/support/services.ts. */
const withServices = {
  globalSetup: '<rootDir>/test/support/jest/global-setup.js',
  globalTeardown: '<rootDir>/test/support/jest/global-teardown.js',
};

/** Bound of a test that starts no process of Baton. The slowest one takes 20 seconds on a busy machine. */
const WITHOUT_PROCESSES_MS = 5 * 60_000;

/** Files of `e2e` with a longer form, such as both messaging drivers: at night `NIGHTLY` of test/support/nightly.ts is true. */
const LONGER_AT_NIGHT = [
  'console/*',
  'e2e/agent-processes',
  'e2e/agent-sandbox',
  'e2e/agents-in-code',
  'e2e/approvals',
  'e2e/authors',
  'e2e/bulk',
  'e2e/clocks',
  'e2e/fairness',
  'e2e/faults',
  'e2e/hostile-peers',
  'e2e/local',
  'e2e/master-key',
  'e2e/outage-answers',
  'e2e/outage-streams',
  'e2e/over-redis',
  'e2e/payments',
  'e2e/recovery',
  'e2e/retention',
  'e2e/several-apis',
  'e2e/sign-in',
  'e2e/subjects',
  'e2e/watchdog',
  'fuzz/fuzz',
  'isolation/isolation',
  'isolation/rebinding',
  'isolation/rights',
  'isolation/role',
  'support/bundle',
].map((name) => `<rootDir>/test/${name}.e2e-spec.ts`);

module.exports = {
  // Tests with processes wait for half of their time: five files at once also where there are two cores, or one.
  maxWorkers: Math.max(5, availableParallelism() - 1),
  testSequencer: '<rootDir>/test/support/jest/sequencer.js',
  // Longer than the longest limit of a test.
  reporters: ['default', ['<rootDir>/test/support/jest/hang-reporter.js', { minutes: 20 }]],
  projects: [
    {
      ...base,
      displayName: 'unit',
      testTimeout: WITHOUT_PROCESSES_MS,
      testMatch: [
        '<rootDir>/{libs,apps,test/docs,test/chaos,test/fuzz,test/isolation,test/oracle,test/quirks}/**/*.spec.ts',
      ],
    },
    {
      ...base,
      ...withServices,
      displayName: 'integration',
      testTimeout: WITHOUT_PROCESSES_MS,
      testMatch: ['<rootDir>/{libs,apps}/**/*.int-spec.ts'],
    },
    {
      ...base,
      ...withServices,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.e2e-spec.ts', '<rootDir>/test/contracts/*.spec.ts'],
    },
    {
      ...base,
      ...withServices,
      displayName: 'nightly',
      testMatch: ['<rootDir>/test/**/*.nightly-spec.ts', ...LONGER_AT_NIGHT],
    },
  ],
};
