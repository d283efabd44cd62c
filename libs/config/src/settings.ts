import type { z } from 'zod';
import { largestLimit, LIMIT_NAMES, type LimitName, limitRule } from './limits.js';
import {
  commandLines,
  days,
  destinations,
  egressPatterns,
  flag,
  fraction,
  hostAndPort,
  hostNames,
  integer,
  logLevel,
  masterKey,
  masterKeys,
  milliseconds,
  otelExporter,
  modelPrices,
  nameServers,
  networks,
  orNone,
  origins,
  path,
  paths,
  pem,
  port,
  publishedKeys,
  pushMode,
  recordMode,
  redisUrl,
  sandboxMode,
  shortFlag,
  signingKey,
  systemKey,
  text,
  tracesSampler,
  url,
} from './values.js';

/** One setting: its name, its values, and its text in `.env.example` and the docs. */
export interface Setting<T = unknown> {
  /** Reads the text of the environment; `undefined` where nothing is set. */
  value: z.ZodType<T, string | undefined>;
  /** The default as text; empty = none. */
  default: string;
  /** Sentences in plain English. A page of the docs is named by its path, such as docs/calling/large-tasks.md. */
  description: string;
  /** Its name in the environment, if that is not its key in capitals (`leaseMs` is `LEASE_MS`). */
  env?: string;
  /** Its value must never be shown: it holds a password or a key. */
  secret?: true;
}

/** Settings that belong together: one section of `.env.example` and one table of docs/reference/settings.md. */
export interface SettingGroup<T extends Record<string, Setting> = Record<string, Setting>> {
  title: string;
  settings: T;
  /** Before the names of its settings in the environment. */
  prefix: string;
  /** Sentences before its first setting. */
  introduction: string;
}

type SettingOptions = Pick<Setting, 'env' | 'secret'>;

type SettingValue<T> = z.ZodType<T, string>;

function setting<T>(
  value: SettingValue<T>,
  preset: string | number | boolean,
  description: string,
  options?: SettingOptions,
): Setting<T> {
  return { value: value.prefault(String(preset)), default: String(preset), description, ...options };
}

function optional<T>(
  value: SettingValue<T>,
  description: string,
  options?: SettingOptions,
): Setting<T | undefined> {
  return { value: value.optional(), default: '', description, ...options };
}

function required<T>(value: SettingValue<T>, description: string, options?: SettingOptions): Setting<T> {
  return { value, default: '', description, ...options };
}

function group<T extends Record<string, Setting>>(
  title: string,
  settings: T,
  { prefix = '', introduction = '' } = {},
): SettingGroup<T> {
  return { title, settings, prefix, introduction };
}

const postgresUrl = url(
  ['postgres:', 'postgresql:'],
  'set it to a Postgres URL such as postgres://user:password@host:5432/baton',
);

const publicUrl = url(['http:', 'https:'], 'set it to the http(s) URL that callers use').transform((value) =>
  value.replace(/\/+$/, ''),
);

const proxyUrl = url(
  ['http:', 'https:'],
  'set it to the http(s) URL of a proxy such as http://user:password@proxy:3128',
);

const services = group('Services', {
  databaseUrl: required(
    postgresUrl,
    'URL of Postgres, such as postgres://baton:password@localhost:5432/baton. Its role must not be a ' +
      'superuser (docs/operating/security.md). Single processes such as `npm run start:api` require it. Without it, `npm start` runs a Postgres of its own. `docker compose` always ' +
      'uses its own.',
    { secret: true },
  ),
  migrateDatabaseUrl: optional(
    postgresUrl,
    'The same with the role that owns the tables, for `npm run migrate` and `baton restore`, if that ' +
      'is not the role of DATABASE_URL (docs/operating/security.md). `npm start` and `docker compose` have both ' +
      'roles.',
    { secret: true },
  ),
  databaseDirectUrl: optional(
    postgresUrl,
    'URL of the same database past its pooler. Set it if DATABASE_URL leads to a pooler that hands out connections for ' +
      'one transaction, such as PgBouncer (docs/operating/postgres.md).',
    { secret: true },
  ),
  databaseReplicaUrl: optional(
    postgresUrl,
    'URL of a streaming standby of the same database. While it keeps up, Baton reads lists, usage and the audit log there ' +
      '(docs/operating/postgres.md).',
    { secret: true },
  ),
  databaseReplicaMaxLagMs: setting(
    integer(100, 3_600_000),
    2_000,
    'Maximum lag of the standby of DATABASE_REPLICA_URL, in ms. Beyond it, Baton reads at DATABASE_URL.',
  ),
  databaseSystemKey: optional(
    systemKey,
    'Key that lets a process work across tenants: base64 of 32 bytes (`openssl rand -base64 32`). A new database ' +
      'asks for the key with which `npm run migrate` has run. `npm start` and ' +
      '`docker compose` make one (docs/operating/security.md).',
    { secret: true },
  ),
  databaseSystemKeyPrevious: optional(
    systemKey,
    'An earlier key. `npm run migrate -- --system-key enforce` lets the database take both.',
    { secret: true },
  ),
  databasePoolSize: setting(integer(2, 1000), 16, 'Maximum connections to Postgres per process. At least 2.'),
  allowRlsBypass: setting(
    flag,
    false,
    'Start even if the role of DATABASE_URL bypasses row-level security, which isolates tenants in the ' +
      'database.',
  ),
  redisUrl: optional(
    redisUrl,
    'URL of Redis, such as redis://localhost:6379, or rediss:// for TLS. It can also name Sentinels or the nodes of a Cluster (docs/operating/redis.md). Carries the queue ' +
      'and the signals between processes. ' +
      'Without it, Postgres does both, at a lower rate. `docker compose` always uses its own.',
    { secret: true },
  ),
});

const api = group('API', {
  port: setting(port, 8080, 'Port of the API. With `docker compose`: its port on this machine.'),
  host: optional(
    text,
    'Address on which the API listens. Default: 127.0.0.1 with `npm start`, 0.0.0.0 otherwise. `::` is all ' +
      'addresses, IPv6 and IPv4; without IPv6 it is 0.0.0.0. With `docker compose`: its address on this machine.',
  ),
  managementPort: optional(
    port,
    'Port of the API for operators: /metrics, and /readyz with details (docs/operating/observability.md). ' +
      'Without it, the API has no such port. `npm start` uses 9090 or a free port; in the containers of ' +
      '`docker compose` it is 9090.',
  ),
  managementHost: setting(
    text,
    '127.0.0.1',
    'Address of the management port. Never open it to callers: only `/v1/admin` asks for a token.',
  ),
  managementHosts: setting(
    hostNames,
    '',
    'Names under which operators and their tools reach the management port and WORKER_PORT, separated by commas, such as ' +
      'baton.ops.example.com. Another name in `Host` gets 421, so that no web page reads the port through the browser of an operator. ' +
      'Addresses, names without a dot, and names that end with `.localhost`, `.svc`, `.cluster.local` or `.internal` need no entry.',
  ),
  grpcPort: optional(
    port,
    'Port of the API for A2A over gRPC (docs/calling/grpc.md). Without it, gRPC is off. `npm start` ' +
      'uses 50051 or a free port; with `docker compose`: its port on this machine.',
  ),
  grpcPublicAddress: optional(
    hostAndPort,
    'Name and port under which callers reach the gRPC port, such as grpc.example.com:443, for agent cards ' +
      '(docs/calling/grpc.md#on-cards). Without it, cards list no gRPC.',
  ),
  grpcTlsCert: optional(
    pem,
    'Certificate chain of the gRPC port, in PEM, or in the file that GRPC_TLS_CERT_FILE names. With GRPC_TLS_KEY the port ' +
      'speaks TLS; without, a proxy must.',
    { secret: true },
  ),
  grpcTlsKey: optional(pem, 'Private key of GRPC_TLS_CERT, in PEM, or in the file of GRPC_TLS_KEY_FILE.', {
    secret: true,
  }),
  grpcStreamsPerConnection: setting(
    integer(1, 100_000),
    100,
    'Maximum number of gRPC calls at the same time over one connection. Clients queue further ones.',
  ),
  trustedProxies: setting(
    networks,
    '',
    'Addresses and networks of the proxies in front of the API, separated by commas. Baton uses `X-Forwarded-For`, ' +
      '`X-Forwarded-Host` and `X-Forwarded-Proto` only from them. The address in `X-Forwarded-For` identifies guests of ' +
      'a public host without a secret (docs/calling/guests.md).',
  ),
  publicUrl: optional(
    publicUrl,
    'URL under which callers reach the API. It may have a path, which a proxy strips (docs/operating/proxies.md). Agent cards contain it. Without it, or with a URL of `localhost`, they contain the ' +
      'origin of the request for the card. Without it, signed cards contain http://localhost:PORT, because ' +
      'callers choose the origin of a request.',
  ),
  corsOrigins: setting(
    origins,
    '',
    'Origins whose scripts may call the API in a browser, separated by commas, such as https://app.example.com. ' +
      '`*` is every origin, without cookies. By default none; `npm start` allows its own.',
  ),
  cardSigningKey: optional(
    signingKey,
    'Private key that signs agent cards: PEM (PKCS8) or JWK. Without it, cards are not signed.',
    { secret: true },
  ),
  previousCardSigningKeys: setting(
    publishedKeys,
    '',
    'Earlier or next keys, published at /.well-known/jwks.json beside CARD_SIGNING_KEY and PUSH_SIGNING_KEY ' +
      '(docs/calling/cards.md). Private or public: PEM blocks one after another, a JWK or a JWK Set.',
    { env: 'CARD_SIGNING_KEY_PREVIOUS', secret: true },
  ),
  pushSigningKey: optional(
    signingKey,
    'Private key that signs push notifications, in the same forms; API and workers need it. Default: CARD_SIGNING_KEY. ' +
      'Without both, only receivers with a secret of their own get a signature (docs/calling/push.md). `npm start` and ' +
      '`docker compose` make one.',
    { secret: true },
  ),
  bodyLimitBytes: setting(
    integer(1024, 1_073_741_824),
    16_777_216,
    'Maximum size of a request body, in bytes.',
  ),
  bodyTotalBytes: setting(
    integer(1024, 1_099_511_627_776),
    134_217_728,
    'Maximum bytes of bodies that an API process receives at the same time, over HTTP and gRPC. A tenant has a tenth ' +
      'of it, or BODY_LIMIT_BYTES if that is more. Further ones get 503. The first 16 KiB of a body do not count.',
  ),
  smallBodyLimitBytes: setting(
    integer(1024, 1_073_741_824),
    1_048_576,
    'Maximum size of a request body at `/`, `/a2a`, `/v1/agent-systems/` and `/v1/agents/`, in bytes.',
  ),
  maxConnections: setting(
    integer(1, 1_000_000),
    10_000,
    'Maximum open connections of callers per API process, over HTTP and gRPC. Fewer if the limit of open files (`ulimit -n`) ' +
      'is lower: some are reserved for Postgres, Redis, probes and the management port.',
  ),
  maxConnectionsPerAddress: optional(
    integer(1, 1_000_000),
    'Maximum open connections from one address (IPv6: from one /64 network) per API process. Proxies in TRUSTED_PROXIES have no ' +
      'such limit. Default: a quarter of all.',
  ),
  unauthenticatedPerSecond: setting(
    integer(0, 1_000_000),
    50,
    'Maximum requests per second, on average over ten seconds, without a valid token from one address (IPv6: from one /64 network), per API ' +
      'process. Further ones get 429 without a query to Postgres. 0: no limit. Guests of public hosts ' +
      'do not count.',
  ),
  headersTimeoutMs: setting(
    milliseconds,
    20_000,
    'Maximum time for a caller to send the headers of a request, in ms. Then it gets 408.',
  ),
  requestTimeoutMs: setting(
    milliseconds,
    120_000,
    'Maximum time for a caller to send a whole request, in ms. Then it gets 408.',
  ),
  keepAliveSeconds: setting(
    integer(1, 86_400),
    75,
    'How long an idle connection of a caller stays open, in seconds. Set it higher than the proxy in front of the API keeps its ' +
      'side open, or some requests get 502 (docs/operating/proxies.md).',
  ),
  sendWaitMs: setting(
    milliseconds,
    30_000,
    'Maximum time that a blocking send waits, in ms. Applies to clients with a timeout of their own ' +
      '(Society), and while no worker is alive. Then it answers with the task as it is. The run continues.',
  ),
  idempotencyHours: setting(
    integer(0, 8760),
    24,
    'How long a repeated message joins its task, in hours. Later it makes a new task. 0: only messages with an ' +
      '`Idempotency-Key` are recognized, for 24 hours. An agent can set its own value (`idempotencyHours`).',
  ),
  sseHeartbeatMs: setting(
    milliseconds,
    4_000,
    'Interval of comments on an idle stream, in ms. They make proxies and clients keep it open. Some clients give up ' +
      'after 5 s of silence.',
  ),
  sseBufferBytes: setting(
    integer(1024, 1_073_741_824),
    1_048_576,
    'Maximum bytes that wait for a slow reader of a stream. Then Baton stops reading the log for it.',
  ),
  sseBufferTotalBytes: setting(
    integer(1024, 1_099_511_627_776),
    16_777_216,
    'Maximum bytes that wait for all slow readers of an API process together. If all are taken, a stream holds an equal share, and at ' +
      'least one event. Pages of logs that streams have read and not yet encoded may take as much again. A tenant has half of that.',
  ),
  sseStallMs: setting(
    milliseconds,
    30_000,
    'Maximum time in ms that a reader may take nothing of the waiting data. Then its stream is closed, and ' +
      'it can resume. A reader that takes 64 KiB in this time is not closed.',
  ),
  relayTickMs: setting(
    milliseconds,
    3000,
    'Interval in ms at which an open stream checks the log for events whose signal was lost.',
  ),
  modelPrices: optional(
    modelPrices,
    'Prices of models for a million tokens, as JSON: {"openai/gpt-5*":{"input":1.25,"cached":0.125,"output":10}}; also "cacheWrite". ' +
      'GET /v1/usage then shows costs (docs/operating/usage.md). Tokens of other models have no cost.',
  ),
  modelPricesCurrency: setting(text, 'USD', 'Currency of MODEL_PRICES, as reports show it.'),
  apiGraceMs: setting(
    milliseconds,
    5000,
    'Maximum time for running requests to end after SIGTERM, in ms. Streams end immediately; callers resume ' +
      'at another process.',
  ),
  consoleEnabled: setting(
    flag,
    true,
    'Whether the API serves the console at /console (docs/operating/console.md).',
  ),
  consoleOidcIssuer: optional(
    url(['http:', 'https:'], 'set it to the URL of the OpenID provider, as in the claim iss of its tokens'),
    'URL of the OpenID provider with which people sign in to the console (docs/operating/console.md). Tenants must ' +
      'trust it: `baton issuers add`. Without it, people sign in with a token.',
  ),
  consoleOidcClientId: optional(
    text,
    'Id of the console as a client of that provider: a public client with PKCE and the redirect URI ' +
      'PUBLIC_URL/console/signed-in.',
  ),
  consoleOidcScope: setting(
    text,
    'openid',
    'Scopes that the console asks the provider for, separated by spaces.',
  ),
  consoleOidcAudience: optional(
    text,
    'Audience that the console asks the provider for, as `resource` (RFC 8707) and as `audience`. Default: none. Some ' +
      'providers choose the audience by the client.',
  ),
  consoleOidcOrigins: setting(
    origins,
    '',
    'Origins besides that of the provider that the console may call for sign-in, separated by commas, if the provider ' +
      'has its token endpoint elsewhere.',
  ),
});

const worker = group('Worker', {
  workerPort: optional(
    port,
    "Port of the worker's /healthz, /readyz and /metrics. It is a management port: never open it to callers. " +
      'It listens on HOST. Without it, the worker listens nowhere. In the containers of `docker compose` ' +
      'it is 8081.',
  ),
  workerConcurrency: setting(integer(1, 10_000), 100, 'Maximum concurrent runs per worker process.'),
  reservedSlotsPercent: setting(
    integer(0, 50),
    12,
    'Share of the slots of all workers, in percent, that stays free for tenants with few runs in flight. At least one slot, ' +
      'and none while there are fewer than four slots. 0 reserves none, and lets all runs of a tenant begin at once beside those of others.',
  ),
  workerGraceMs: setting(
    milliseconds,
    10_000,
    'Maximum time for runs to end after SIGTERM, in ms. Then the worker returns them to the queue.',
  ),
  leaseMs: setting(milliseconds, 3000, 'How long a run belongs to a worker without a heartbeat, in ms.'),
  leaseHeartbeatMs: setting(
    milliseconds,
    750,
    'Interval at which a worker extends its leases, in ms. At most half of LEASE_MS.',
  ),
  sweepMs: setting(
    milliseconds,
    1000,
    'Interval at which one of the workers searches for lost and waiting runs, in ms. It searches sooner when a lease ends.',
  ),
  maxAttempts: setting(
    integer(1, 100),
    3,
    'Attempts of a run before its task fails. An agent can set its own value (`retry`).',
  ),
  staleQueuedRunMs: setting(
    milliseconds,
    3000,
    'Age in ms after which a queued run that is on no queue is enqueued again.',
    { env: 'ORPHAN_MS' },
  ),
  scheduleLateMs: setting(
    milliseconds,
    60_000,
    'If a schedule fires later than this, in ms, its time counts as missed (`missed` of the ' +
      'schedule). Less late times are fired one by one.',
  ),
  delegationDepth: setting(
    integer(1, 100),
    5,
    'Maximum delegation depth: how many agents in a row may pass a task on. An agent can set a lower ' +
      'value.',
  ),
  delegationTasks: setting(
    integer(1, 10_000),
    50,
    'Maximum number of child tasks per task of a caller, at any depth. An agent can set a lower value.',
  ),
  indexModel: optional(
    text,
    'Model with which the built-in agent `index` routes messages, as provider/model. The key is the ' +
      "tenant's secret with the name of the provider.",
  ),
  indexModelUrl: optional(
    url(['http:', 'https:'], 'set it to the http(s) URL of the model of INDEX_MODEL'),
    'URL of INDEX_MODEL, if it is not the usual one of its provider.',
  ),
  pushConcurrency: setting(
    integer(1, 1000),
    32,
    'Maximum requests per worker process at one time that deliver push notifications (docs/calling/push.md#how-baton-delivers).',
  ),
  pushPerHost: setting(
    integer(1, 1000),
    8,
    'Maximum requests to one host at one time that deliver push notifications, over all workers.',
  ),
  pushPerTenant: setting(
    integer(1, 1000),
    16,
    'Maximum requests for one tenant at one time that deliver push notifications, over all workers.',
  ),
  pushTimeoutMs: setting(
    integer(1, 300_000),
    10_000,
    'Maximum time for a receiver to answer a push notification, in ms. After the death of a worker, others take its push ' +
      'configs after this time and 5 s.',
  ),
  pushResponseBytes: setting(
    integer(0, 16_777_216),
    16_384,
    "Maximum bytes read of a receiver's answer to a push notification. Only its status counts. Deliveries show the beginning.",
  ),
  pushFirstRetryMs: setting(
    milliseconds,
    1000,
    'Maximum pause after the first failure of a push notification, in ms. It doubles with each further failure in a row. ' +
      'The pause is random, up to this maximum.',
  ),
  pushMaxRetryMs: setting(
    milliseconds,
    900_000,
    'Maximum of these pauses, in ms, also of those that a receiver asks for (`Retry-After`).',
  ),
  pushGiveUpHours: setting(
    integer(0, 8760),
    24,
    'Hours of failures without a success after which Baton gives a push config up. 0: at the second failure in a row. You ' +
      'can deliver it again (docs/calling/push.md#how-baton-delivers).',
  ),
  retentionSweepMs: setting(
    milliseconds,
    60_000,
    'Interval at which tasks past their retention (LIMIT_RETENTION_DAYS) are deleted, in ms.',
  ),
  tombstoneDays: setting(
    days,
    90,
    'Days that Baton remembers a deleted task, to tell callers that it was deleted.',
  ),
  auditRetentionDays: setting(
    days,
    365,
    'Days that records of the audit log stay (docs/operating/audit.md). Retention deletes older ones.',
  ),
  recordDefault: setting(
    recordMode,
    'none',
    'Which calls of models Baton records for agents whose settings have no `record`: `none`, `failed` or `all` ' +
      '(docs/agents/model-calls.md#what-a-model-was-sent-and-said). `npm start` sets `failed`.',
  ),
  recordRetentionDays: setting(
    days,
    7,
    'Days that records of model calls stay. They are deleted with their task if it is deleted before.',
  ),
  executorMemoryMb: setting(
    integer(32, 65_536),
    512,
    'Heap of the process of an agent in code, in MiB. 256 MiB more are allowed for everything else. Its ' +
      'agent.yaml can set another value (docs/agents/executors.md).',
  ),
  executorStallMs: setting(
    milliseconds,
    30_000,
    'Maximum time without a heartbeat of the process of an agent, in ms. Then it is killed, and its ' +
      'runs are tried again. Its agent.yaml can set another value.',
  ),
  executorLoadMs: setting(
    milliseconds,
    30_000,
    'Maximum time in which the module of an agent in code loads, in ms. Then its process is killed, and the agent is left out, ' +
      'or its runs are tried again.',
  ),
  executorProcesses: setting(
    integer(1, 64),
    1,
    'Processes per agent in code and worker. They share its runs. Its agent.yaml can set another value.',
  ),
  executorIdleMs: setting(
    milliseconds,
    600_000,
    'How long the process of an agent is kept without runs, in ms.',
  ),
  executorTenantProcesses: setting(
    integer(2, 1000),
    16,
    'Maximum processes of agents in code with `isolation: tenant`, over all agents and tenants of a worker. Further turns ' +
      'wait, and tenants take turns (docs/agents/executors.md).',
  ),
  executorSandbox: setting(
    sandboxMode,
    'auto',
    'Sandbox of agents in code: auto (where the system has one; otherwise the worker warns), required (otherwise the worker ' +
      'does not start) or off (docs/agents/executors.md).',
  ),
  executorRead: setting(
    paths,
    '',
    'Further files and folders that agents in code may read and run, separated by commas, such as /opt/tools.',
  ),
  executorWrite: setting(
    paths,
    '',
    'Further folders in which agents in code may also write, separated by commas, such as /var/lib/agents.',
  ),
  mcpStdioAllow: setting(
    commandLines,
    '',
    'Commands that tenants may start as MCP servers, separated by commas. Each entry has the variables ' +
      'that a tenant may set, then the beginning of the command line: `TOKEN= npx -y notes-server`. They ' +
      "run as the worker's user: read docs/agents/tools.md first. Default: none.",
  ),
  mcpKeptPrograms: setting(
    integer(0, 1000),
    16,
    'Maximum MCP programs with `keep` that a worker keeps for their contexts (docs/agents/tools.md#keep-a-program).',
  ),
  mcpKeptProgramsPerTenant: setting(integer(0, 1000), 4, 'The same for the programs of one tenant.'),
});

const everyProcess = group('Every process', {
  logLevel: setting(logLevel, 'info', 'Log level: fatal, error, warn, info, debug, trace or silent.'),
  otlpEndpoint: optional(
    url(['http:', 'https:'], 'set it to the http(s) URL of an OTLP receiver, such as http://collector:4318'),
    'URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://collector:4318. Turns on traces, ' +
      'metrics and logs (docs/operating/observability.md#opentelemetry). Without it, OpenTelemetry is off.',
    { env: 'OTEL_EXPORTER_OTLP_ENDPOINT' },
  ),
  otlpTracesEndpoint: optional(
    url(['http:', 'https:'], 'set it to the http(s) URL that takes spans, with its path'),
    'The same only for traces, with the whole path. Default: OTEL_EXPORTER_OTLP_ENDPOINT and /v1/traces.',
    { env: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' },
  ),
  otlpMetricsEndpoint: optional(
    url(['http:', 'https:'], 'set it to the http(s) URL that takes metrics, with its path'),
    'The same only for metrics. Default: OTEL_EXPORTER_OTLP_ENDPOINT and /v1/metrics.',
    { env: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT' },
  ),
  otlpLogsEndpoint: optional(
    url(['http:', 'https:'], 'set it to the http(s) URL that takes logs, with its path'),
    'The same only for logs. Default: OTEL_EXPORTER_OTLP_ENDPOINT and /v1/logs.',
    { env: 'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT' },
  ),
  otelTracesExporter: setting(otelExporter, 'otlp', 'none: send no traces.', { env: 'OTEL_TRACES_EXPORTER' }),
  otelMetricsExporter: setting(
    otelExporter,
    'otlp',
    'none: send no metrics. Use it if Prometheus reads /metrics.',
    { env: 'OTEL_METRICS_EXPORTER' },
  ),
  otelLogsExporter: setting(
    otelExporter,
    'otlp',
    'none: send no logs. Use it if a program collects standard output.',
    { env: 'OTEL_LOGS_EXPORTER' },
  ),
  otelMetricsEveryMs: setting(
    integer(1_000, 86_400_000),
    60_000,
    'Pause between two exports of metrics, in ms.',
    {
      env: 'OTEL_METRIC_EXPORT_INTERVAL',
    },
  ),
  otlpHeaders: optional(
    text,
    'Headers of requests to it, such as `authorization=Bearer%20key`, separated by commas.',
    { env: 'OTEL_EXPORTER_OTLP_HEADERS', secret: true },
  ),
  otelServiceName: optional(
    text,
    'Name of the service in traces, metrics and logs. Default: `baton-api` or `baton-worker`.',
    {
      env: 'OTEL_SERVICE_NAME',
    },
  ),
  otelResourceAttributes: optional(
    text,
    'Further attributes of the processes in traces, metrics and logs, such as `deployment.environment.name=production`, ' +
      'separated by commas.',
    { env: 'OTEL_RESOURCE_ATTRIBUTES' },
  ),
  otelTracesSampler: setting(
    tracesSampler,
    'parentbased_always_on',
    'Which traces are sent: always_on, always_off or traceidratio. With the prefix `parentbased_`, the `traceparent` of a ' +
      'caller decides for its trace.',
    { env: 'OTEL_TRACES_SAMPLER' },
  ),
  otelTracesSamplerArg: optional(
    fraction,
    'Share of the traces that traceidratio sends, from 0 to 1. Default: 1.',
    { env: 'OTEL_TRACES_SAMPLER_ARG' },
  ),
  otelSdkDisabled: setting(
    flag,
    false,
    'Turn off traces, metrics and logs by OTLP. Wins over the other settings.',
    {
      env: 'OTEL_SDK_DISABLED',
    },
  ),
  auditStdout: setting(
    flag,
    false,
    'Also print each record of the audit log as a line of JSON on standard output, whatever LOG_LEVEL ' +
      '(docs/operating/audit.md).',
  ),
  agentsDir: optional(
    path,
    'Folder of the agents in code: one folder per agent, with an agent.yaml and a module ' +
      '(docs/agents/executors.md). Every tenant can use them. `docker compose` uses examples/agents by ' +
      'default.',
    { env: 'BATON_AGENTS_DIR' },
  ),
  devMode: setting(
    shortFlag,
    0,
    'For development: workers load agents of BATON_AGENTS_DIR again when their files change, and keep their processes ' +
      '(docs/start/write-an-agent.md). Not for production.',
    { env: 'BATON_DEV' },
  ),
  masterKey: optional(
    masterKey,
    'Key that encrypts the secrets of tenants: base64 of 32 bytes (`openssl rand -base64 32`). `npm ' +
      'start` and `docker compose` make one.',
    { env: 'BATON_MASTER_KEY', secret: true },
  ),
  masterKeyFile: optional(
    path,
    'File with that key on its first line, if BATON_MASTER_KEY is not set. Further lines are earlier keys ' +
      '(docs/operating/secrets.md#the-master-key).',
    { env: 'BATON_MASTER_KEY_FILE' },
  ),
  masterKeyCommand: optional(
    text,
    'Command of the shell that prints the same, if neither is set. It runs once in each process ' +
      '(docs/operating/secrets.md#the-master-key).',
    { env: 'BATON_MASTER_KEY_COMMAND', secret: true },
  ),
  previousMasterKeys: setting(
    masterKeys,
    '',
    'Earlier master keys, separated by commas. They only decrypt. Needed until `baton secrets ' +
      'rotate` has run.',
    { env: 'BATON_MASTER_KEY_PREVIOUS', secret: true },
  ),
  loopStallMs: optional(
    milliseconds,
    'Maximum time in ms that the event loop of a process may be blocked. Then the process kills itself, ' +
      'and its supervisor starts it again (docs/operating/recovery.md). At least LEASE_MS. Default: ' +
      '15000, or LEASE_MS if that is more.',
  ),
  tokenCacheMs: setting(
    milliseconds,
    1000,
    'Maximum time in ms that a process accepts a token without asking Postgres again.',
  ),
  maxClockOffsetMs: setting(
    milliseconds,
    60_000,
    'Maximum difference in ms between the clock of this machine and that of Postgres at the start. With a larger one the ' +
      'process does not start (docs/operating/recovery.md#clocks).',
  ),
  pushNotifications: setting(
    pushMode,
    'declared',
    'Agents with push notifications: off, declared (those that say so) or all (docs/calling/push.md#configs).',
  ),
  pushChallenge: setting(
    flag,
    false,
    'A receiver of push notifications must answer a challenge before its config is stored (docs/calling/push.md).',
  ),
  outboundAllow: setting(
    destinations,
    '',
    'Private addresses that agents may call, separated by commas: networks and hosts, such as ' +
      '10.0.0.0/8, ollama:11434 (docs/agents/remote-agents.md). By default agents call only public ' +
      'addresses. `npm start` allows its own machine.',
  ),
  outboundDeny: setting(
    egressPatterns,
    '',
    'Destinations that no agent may call, separated by commas: names, names below one, addresses and networks, ' +
      'such as *.example.com, 192.0.2.0/24 (docs/operating/egress.md). It wins over OUTBOUND_ALLOW.',
  ),
  outboundDns: setting(
    nameServers,
    '',
    'Name servers for the names that tenants write, separated by commas, such as 10.0.0.2, [fd00::2]:5353 ' +
      '(docs/operating/egress.md). Default: those of the system.',
  ),
  outboundProxy: optional(
    proxyUrl,
    'Proxy for all calls of agents, such as http://user:password@proxy:3128 (docs/operating/egress.md). ' +
      'Postgres, Redis and telemetry do not use it. Default: no proxy.',
    { secret: true },
  ),
  outboundProxyResolves: setting(
    flag,
    false,
    'The proxy resolves names, not Baton. Then Baton cannot check the addresses of names ' +
      '(docs/operating/egress.md).',
  ),
  taskReadBytes: setting(
    integer(65_536, 268_435_456),
    16_777_216,
    'Maximum bytes of tasks that one request reads (history and artifacts as JSON). The answer says ' +
      'if something is left out. A run reads at most a quarter of this (docs/calling/large-tasks.md).',
  ),
  taskReadTotalBytes: setting(
    integer(65_536, 1_099_511_627_776),
    67_108_864,
    'Maximum bytes of large tasks that all requests of an API process read at the same time. Each takes ' +
      'several times as much memory. Further requests wait, and get 503 after ten seconds ' +
      '(docs/calling/large-tasks.md).',
  ),
  maxEventBytes: setting(
    integer(1024, 268_435_456),
    4_194_304,
    'Maximum size of one event of an agent, in bytes.',
  ),
  computeThreads: setting(
    integer(2, 64),
    2,
    "Threads per API and worker process for slow work on tenants' input: JSON schemas and patterns. " +
      'One thread is always left for other tenants. At least 2.',
  ),
  computeTimeoutMs: setting(
    integer(10, 60_000),
    2000,
    'Maximum CPU time of one such computation, in ms. Then its thread is terminated. On a busy machine it may last ten ' +
      'times as long. If the operating system does not report the CPU time of threads, this is the maximum duration.',
  ),
});

/** The limit of every tenant without its own. It may be above the limit's `max`: earlier releases accepted that. */
function limitSetting(name: LimitName): Setting<number | null> {
  const { default: preset, description, fractions, newDatabasesOnly = false } = limitRule(name);
  const value = orNone<number>(fractions ? days : integer(1, largestLimit(name)));
  if (preset !== null && !newDatabasesOnly) return setting(value, preset, description);
  const orDefault = value.optional().transform((limit) => (limit === undefined ? preset : limit));
  return { ...optional(value, description), value: orDefault };
}

const limits = group(
  'Limits of a tenant',
  Object.fromEntries(
    LIMIT_NAMES.filter((name) => !limitRule(name).required).map((name) => [name, limitSetting(name)]),
  ) as Record<LimitName, Setting<number | null>>,
  {
    prefix: 'LIMIT_',
    introduction:
      '`LIMIT_…` is the default of a limit, for tenants without their own value. A limit without a default is off. `none` lifts a ' +
      'limit. docs/reference/limits.md lists and explains each.',
  },
);

const local = group('`npm start`, `docker compose` and `baton`', {
  home: setting(
    path,
    '.baton',
    'Folder with the data of `npm start`: embedded services, logs, the demo token.',
    { env: 'BATON_HOME' },
  ),
  workers: setting(integer(1, 64), 1, 'Number of worker processes.'),
  apis: setting(
    integer(1, 64),
    2,
    'Number of API processes behind the proxy of docker-compose.proxy.yml (docs/start/production.md).',
  ),
  batonImage: optional(
    text,
    'Image that `docker compose` runs, such as the one of a release. Default: it builds one from the source.',
  ),
  postgresPassword: optional(
    text,
    'Password of the superuser in the Postgres of `docker compose`: letters and digits. Used when the ' +
      'database is created. Default: a random one, made at the first start.',
    { secret: true },
  ),
  batonDatabasePassword: optional(
    text,
    'Password of the role `baton` in the Postgres of `docker compose`: letters and digits. Used when ' +
      'the database is created. Default: a random one, made at the first start.',
    { secret: true },
  ),
  agentsOffline: setting(
    flag,
    false,
    'With `docker compose`: the workers reach only Postgres and Redis, so agents cannot call other servers ' +
      '(docs/operating/hardening.md).',
  ),
  batonUrl: optional(
    text,
    'URL of the server that `baton send`, `agents`, `schedules` and similar commands call. Default: ' +
      'that of `npm start`.',
  ),
  batonAdminUrl: optional(
    text,
    'URL of a management port, for the commands of operators. Default: that of this machine.',
  ),
  batonOperatorToken: optional(
    text,
    'Token of an operator, from `baton operator-tokens create`. Default: on the machine of Baton, each command makes one for itself.',
    { secret: true },
  ),
  batonToken: optional(text, 'Token for these commands. Default: the demo token of `npm start`.', {
    secret: true,
  }),
});

/** The settings of every process. */
export const PROCESS_GROUPS = { services, api, worker, everyProcess, limits };

/**
 * Every setting. This table is the only place that declares one: the type, the default and the errors of the environment
 * derive from it, and so do `.env.example`, docker-compose.yml and docs/reference/settings.md (`npm run generate`).
 */
export const SETTING_GROUPS = { ...PROCESS_GROUPS, local };

/** The settings that `npm start` and the command line read before any service is known. */
export const LOCAL_GROUPS = {
  local: group(local.title, {
    home: local.settings.home,
    workers: local.settings.workers,
    port: api.settings.port,
    databaseUrl: { ...services.settings.databaseUrl, value: postgresUrl.optional() },
    migrateDatabaseUrl: services.settings.migrateDatabaseUrl,
    databaseDirectUrl: services.settings.databaseDirectUrl,
    databaseSystemKey: services.settings.databaseSystemKey,
    databaseSystemKeyPrevious: services.settings.databaseSystemKeyPrevious,
    redisUrl: services.settings.redisUrl,
    masterKey: everyProcess.settings.masterKey,
    masterKeyFile: everyProcess.settings.masterKeyFile,
    masterKeyCommand: everyProcess.settings.masterKeyCommand,
    agentsDir: everyProcess.settings.agentsDir,
    devMode: everyProcess.settings.devMode,
  }),
};

/** `runsAtOnce` in the group with the prefix `LIMIT_` is `LIMIT_RUNS_AT_ONCE`. */
export function environmentName(key: string, { prefix, settings }: SettingGroup): string {
  return settings[key]?.env ?? prefix + key.replaceAll(/[A-Z]/g, '_$&').toUpperCase();
}

const named = Object.values<SettingGroup>(SETTING_GROUPS).flatMap((group) =>
  Object.entries(group.settings).map(([key, { secret }]) => ({ name: environmentName(key, group), secret })),
);

/** The name of every setting in the environment. */
export const SETTING_NAMES: readonly string[] = named.map(({ name }) => name);

/** The names of the settings whose values must never be shown. */
const SECRET_NAMES: ReadonlySet<string> = new Set(
  named.filter(({ secret }) => secret).map(({ name }) => name),
);

/** Each secret may be in a file, which this variable names: `DATABASE_URL_FILE`. The master key has a setting for it. */
export const SECRET_FILE_NAMES: readonly string[] = [...SECRET_NAMES]
  .map((name) => `${name}_FILE`)
  .filter((name) => !SETTING_NAMES.includes(name));

/** Names with Baton's prefix that resemble a secret: a setting of another version of Baton, or a mistyped one. */
const SECRET_PATTERN = /^BATON_(.*_)?(KEY|PASSWORD|SECRET|TOKEN)S?(_|$)/;

/** Whether a variable of the environment may hold a secret of Baton. No message shows its value; no agent gets it. */
export function isBatonSecret(name: string): boolean {
  return SECRET_NAMES.has(name) || SECRET_PATTERN.test(name);
}
