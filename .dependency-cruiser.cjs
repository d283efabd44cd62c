// Who may import whom (docs/inside/architecture.md). Each rule is named after what it forbids.

/** What each library may import of the others; what is missing here may import all of them. */
const MAY_IMPORT = {
  a2a: [],
  config: [],
  contract: [],
  postgres: [],
  telemetry: ['config'],
  database: ['a2a', 'config', 'postgres', 'telemetry'],
  cron: [],
  sandbox: [],
  messaging: ['a2a', 'config', 'cron', 'postgres', 'telemetry'],
  identity: ['a2a', 'config', 'postgres', 'telemetry', 'database', 'messaging', 'outbound'],
  compute: ['a2a', 'config', 'telemetry'],
  outbound: ['a2a', 'config', 'telemetry'],
  agents: ['a2a', 'compute', 'config', 'outbound', 'sandbox', 'telemetry'],
};

const TESTS =
  '\\.(spec|int-spec|e2e-spec|nightly-spec|fixture)\\.c?ts$|\\.fixture\\.cjs$|^libs/[^/]+/test/|^test/';

const layers = Object.entries(MAY_IMPORT).map(([lib, others]) => ({
  name: `${lib}-imports-only-${others.length > 0 ? others.join('-') : 'nothing-of-ours'}`,
  severity: 'error',
  from: { path: `^libs/${lib}/`, pathNot: TESTS },
  to: { path: '^(libs|apps)/', pathNot: `^libs/(${[lib, ...others].join('|')})/` },
}));

/** A package that one library alone may import. */
const onlyIn = (lib, name, packages) => ({
  name,
  severity: 'error',
  from: { path: '^(libs|apps)/', pathNot: [`^libs/${lib}/`, TESTS] },
  to: { path: `node_modules/(${packages})/` },
});

module.exports = {
  forbidden: [
    ...layers,
    {
      name: 'a2a-is-pure',
      comment: 'No Nest, no I/O: the protocol can be tested and reused by itself.',
      severity: 'error',
      from: { path: '^libs/a2a/', pathNot: TESTS },
      to: {
        path: 'node_modules/(@nestjs|fastify|pino|ioredis|pg)/|^(node:)?(fs|net|http|https|child_process)$',
      },
    },
    {
      name: 'libs-do-not-import-apps',
      severity: 'error',
      from: { path: '^libs/', pathNot: TESTS },
      to: { path: '^apps/' },
    },
    {
      name: 'apps-do-not-import-each-other',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: TESTS },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'console-knows-the-api-alone',
      comment: 'It runs in a browser. The types of the API come from its OpenAPI documents.',
      severity: 'error',
      from: { path: '^apps/console/', pathNot: TESTS },
      to: { path: '^libs/', pathNot: '^libs/contract/' },
    },
    {
      name: 'libs-are-entered-through-their-index',
      comment: 'Across libraries: @baton/<lib>, never a file inside.',
      severity: 'error',
      from: { path: '^(libs|apps)/([^/]+)/', pathNot: TESTS },
      to: { path: '^libs/([^/]+)/', pathNot: ['^$1/$2/', '^libs/[^/]+/src/index\\.ts$'] },
    },
    {
      name: 'product-code-does-not-import-tests',
      severity: 'error',
      from: { path: '^(libs|apps)/', pathNot: TESTS },
      to: { path: TESTS },
    },
    {
      name: 'rest-controllers-do-not-import-database',
      comment: 'Controllers call use cases, which name the types of their results.',
      severity: 'error',
      from: { path: '^apps/api/src/(rest/|.*\\.controller\\.ts$)', pathNot: TESTS },
      to: { path: '^libs/database/' },
    },
    {
      name: 'commands-call-the-api',
      comment:
        'Those that need the database are in docs/reference/cli.md. The others know names of the audit log and errors.',
      severity: 'error',
      from: {
        path: '^apps/cli/',
        pathNot: [
          TESTS,
          '^apps/cli/src/(doctor/|explain|release|rotate-secrets|operator/(command|create-operator)-token|commands/(audit|backup|doctor|master-key))',
        ],
      },
      to: { path: '^libs/database/' },
    },
    onlyIn('database', 'only-database-imports-prisma', '@prisma|prisma'),
    onlyIn('(database|postgres)', 'only-database-and-postgres-import-pg', 'pg|pg-pool'),
    onlyIn('messaging', 'only-messaging-imports-bullmq-or-ioredis', 'bullmq|ioredis'),
    {
      name: 'no-cycles-between-folders',
      comment: 'The folders of a library are layers: you can read each without those above it.',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-dev-dependency-in-product-code',
      comment:
        'The console is bundled and the types of the API are made when Baton is built: nothing of both is installed to run it.',
      severity: 'error',
      from: { path: '^(libs|apps)/', pathNot: [TESTS, '^apps/console/', '^libs/contract/generate\\.mjs$'] },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nothing-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    // Tests may import anything. Oxlint, which checks types, reports what they import and cannot find.
    doNotFollow: { path: `node_modules|${TESTS}` },
    exclude: { path: '(^|/)dist/|libs/(contract|database)/src/generated/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['require', 'node', 'import', 'default', 'types'],
    },
  },
};
