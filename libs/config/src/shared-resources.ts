import type { LimitName } from './limits.js';
import type { PROCESS_GROUPS } from './settings.js';

type SettingKey = {
  [Group in keyof typeof PROCESS_GROUPS]: keyof (typeof PROCESS_GROUPS)[Group]['settings'];
}[Exclude<keyof typeof PROCESS_GROUPS, 'limits'>];

/** A resource that callers of all tenants share, and what keeps one of them from using it up. */
export interface SharedResource {
  /** Its name, and the processes that have it. */
  readonly name: string;
  /** Settings that bound it. */
  readonly settings: readonly SettingKey[];
  /** Limits of a tenant that bound it. */
  readonly limits: readonly LimitName[];
  /** Constants that bound it: the file that declares each, by the name of the constant. */
  readonly constants: Readonly<Record<string, string>>;
  /** Share of one tenant or address, in short sentences for operators. `{NAME}` is the value of a constant. */
  readonly share: string;
  /** How the share is kept, for who changes it. `{NAME}` as above. */
  readonly details?: string;
  /** What happens at the bound, as a sentence. */
  readonly exceeded: string;
  readonly metrics: readonly string[];
  /** Files of the tests that attack it, from the root of the repository. docs/inside/shared-resources.md lists them. */
  readonly tests: readonly string[];
}

/**
 * Every shared resource. docs/operating/hardening.md and docs/inside/shared-resources.md have tables of it (`npm run generate`). A setting or limit whose name
 * says that it is a bound must be in a row, or in `NO_BOUNDS`.
 */
export const SHARED_RESOURCES: readonly SharedResource[] = [
  {
    name: 'connections of callers',
    settings: ['maxConnections', 'maxConnectionsPerAddress', 'keepAliveSeconds', 'headersTimeoutMs'],
    limits: [],
    constants: {
      MANAGEMENT_CONNECTIONS: 'apps/api/src/http/connection-limit.ts',
      SPARE_CONNECTIONS: 'apps/api/src/http/connection-limit.ts',
    },
    share:
      'An address (IPv6: a /64 network) has a quarter. The management port has {MANAGEMENT_CONNECTIONS} of its own.',
    exceeded: 'Silent ones are closed. Further ones get 503 or are closed; probes of health are answered.',
    metrics: ['baton_connections', 'baton_connections_refused_total'],
    tests: ['apps/api/src/http/connection-limit.spec.ts', 'test/e2e/silent-connections.nightly-spec.ts'],
  },
  {
    name: 'event loop of an API',
    settings: ['unauthenticatedPerSecond'],
    limits: ['requestsPerSecond', 'guestShare', 'guestRequestsPerSecond', 'guestMessagesPerDay'],
    constants: {
      MAX_JSON_DEPTH: 'libs/a2a/src/json-scanner.ts',
      MAX_JSON_VALUES: 'libs/a2a/src/json-scanner.ts',
      SMALL_WORK_BYTES: 'apps/api/src/http/loop-turns.ts',
      CALLS_A_TURN: 'apps/api/src/http/call-turns.ts',
      SMALL_CHUNKS_A_MS: 'apps/api/src/http/fine-bodies.ts',
    },
    share:
      'Requests per second of an address without a token, of a tenant, and of its guests. ' +
      'Large bodies and answers of a tenant take turns. They get a third of the time while others send.',
    details:
      'JSON has {MAX_JSON_DEPTH} levels and {MAX_JSON_VALUES} values. ' +
      'Bodies, answers, events and pages of the content of tasks are large from {SMALL_WORK_BYTES} bytes on: one of a tenant at a time. ' +
      '{CALLS_A_TURN} requests or calls begin in a turn of the event loop, and connections take turns. ' +
      'Bodies in small chunks take turns, too, and the process takes {SMALL_CHUNKS_A_MS} chunks of these in a millisecond.',
    exceeded: '429 with `Retry-After`. Larger JSON gets 400. Large work waits.',
    metrics: ['nodejs_eventloop_lag_p99_seconds', 'baton_limit_exceeded_total'],
    tests: [
      'apps/api/src/http/loop-turns.spec.ts',
      'libs/database/src/tasks/task-content.spec.ts',
      'apps/api/src/streams/event-stream.spec.ts',
      'apps/api/src/http/call-turns.spec.ts',
      'apps/api/src/http/pipelined-requests.spec.ts',
      'apps/api/src/http/paced-request.spec.ts',
      'apps/api/src/access/unauthenticated-limit.spec.ts',
      'test/e2e/hostile-content.nightly-spec.ts',
      'test/e2e/limits.ts',
    ],
  },
  {
    name: 'threads of libuv',
    settings: [],
    limits: [],
    constants: {},
    share: 'No work of tenants runs there, except unpacking gRPC messages with a token.',
    exceeded: 'Work waits. Names of tenants are looked up elsewhere: see DNS.',
    metrics: [],
    tests: ['test/e2e/silent-names.nightly-spec.ts', 'apps/api/src/grpc/public-calls.spec.ts'],
  },
  {
    name: 'compute threads',
    settings: ['computeThreads', 'computeTimeoutMs'],
    limits: [],
    constants: {
      MAX_WAITING: 'libs/compute/src/compute-refused.ts',
      COMPUTE_TIME_SHARE: 'libs/compute/src/compute-pool.ts',
    },
    share:
      'A tenant has all threads but one, {COMPUTE_TIME_SHARE} of the time after a burst, and {MAX_WAITING} pieces of waiting work.',
    exceeded:
      'Tenants take turns. A tenant ahead of its share waits. A thread over its time is terminated. Further work is refused.',
    metrics: ['baton_compute_jobs', 'baton_limit_exceeded_total'],
    tests: ['libs/compute/src/compute-pool.spec.ts'],
  },
  {
    name: 'memory of an API for bodies',
    settings: ['bodyTotalBytes', 'bodyLimitBytes', 'smallBodyLimitBytes', 'requestTimeoutMs'],
    limits: ['bodyBytes'],
    constants: {},
    share: 'A tenant, or an address of guests, has a tenth, or one body of the maximum size.',
    details:
      'Messages that are not stored yet take at most a sixteenth of it for a tenant, or one message, and half of it in total.',
    exceeded:
      'The slowest body ends, or the new one gets 503 (over gRPC `UNAVAILABLE`). A complete body waits, unparsed, until ' +
      'earlier messages are stored.',
    metrics: ['baton_limit_exceeded_total'],
    tests: [
      'apps/api/src/http/body-memory-pool.spec.ts',
      'apps/api/src/http/unstored-bodies.spec.ts',
      'apps/api/src/http/hostile-bodies.spec.ts',
    ],
  },
  {
    name: 'memory of an API for large tasks',
    settings: ['taskReadTotalBytes', 'taskReadBytes'],
    limits: [],
    constants: { MAX_WAITING: 'apps/api/src/http/read-memory-pool.ts' },
    share: 'A tenant has half, and {MAX_WAITING} waiting calls. Tenants take turns.',
    details:
      'A call has its memory until its answer is sent, a notice of MCP until its reader has taken it. ' +
      'A page of tasks with their contents counts as if all were large until it is read.',
    exceeded: 'Calls wait, and get 503 after ten seconds.',
    metrics: ['baton_request_duration_seconds'],
    tests: [
      'apps/api/src/http/read-memory-pool.spec.ts',
      'libs/database/src/tasks/task-list.int-spec.ts',
      'apps/api/src/mcp/task-notices.spec.ts',
    ],
  },
  {
    name: 'streams, and memory for slow readers',
    settings: ['sseBufferTotalBytes', 'sseBufferBytes', 'sseStallMs'],
    limits: ['openStreams'],
    constants: { MAX_UNREAD_MB: 'apps/api/src/http/unread-answers.ts' },
    share:
      'Open streams of a tenant. A stream has its own buffer, and if the total is taken an equal share of it. Of {MAX_UNREAD_MB} MiB for all ' +
      'other answers, an address or a connection of a trusted proxy has half, and if all is taken an equal share.',
    details:
      'Pages of the log take as much again: a tenant has half, its guests together half, and each at least one page.',
    exceeded:
      '429. A reader that takes nothing is closed, and can resume. Further pages are read when there is room.',
    metrics: ['baton_open_streams', 'baton_task_watches', 'baton_limit_exceeded_total'],
    tests: [
      'apps/api/src/http/unread-answers.spec.ts',
      'apps/api/src/grpc/unread-messages.spec.ts',
      'apps/api/src/streams/event-stream.spec.ts',
      'libs/tasks/src/relay/log-reader.spec.ts',
      'apps/api/src/streams/stream-quota.int-spec.ts',
      'test/e2e/streams.ts',
    ],
  },
  {
    name: 'gRPC calls',
    settings: ['grpcStreamsPerConnection'],
    limits: [],
    constants: {
      MAX_OF_ADDRESS: 'apps/api/src/grpc/public-calls.ts',
      MAX_OPEN: 'apps/api/src/grpc/public-calls.ts',
      SESSION_MEGABYTES: 'apps/api/src/grpc/grpc-server.ts',
      CALLS_A_READ: 'apps/api/src/grpc/grpc-sessions.ts',
      PENDING_OF_ADDRESS: 'apps/api/src/grpc/pending-calls.ts',
      PENDING_CALLS: 'apps/api/src/grpc/pending-calls.ts',
      FRAME_BYTES: 'apps/api/src/grpc/frame-budgets.ts',
      FRAME_BYTES_PER_SECOND: 'apps/api/src/grpc/frame-budgets.ts',
    },
    share:
      'Open calls of a connection. Health and reflection: {MAX_OF_ADDRESS} calls of an address, {MAX_OPEN} of all.',
    details:
      'A connection may hold {SESSION_MEGABYTES} MB. ' +
      'After {CALLS_A_READ} new calls in a turn of the event loop, connections are read on in the next one. ' +
      'Calls whose message has not arrived: {PENDING_OF_ADDRESS} of an address, {PENDING_CALLS} of all. ' +
      'A connection may reset within a second twice the calls that it may have open. ' +
      'Beside messages it may bring {FRAME_BYTES} bytes at once, and {FRAME_BYTES_PER_SECOND} a second.',
    exceeded:
      'Calls wait at the client, or get `RESOURCE_EXHAUSTED`. The call that waits longest for its message is refused. A connection that resets more calls is closed. One that brings more bytes is not read for a while.',
    metrics: ['baton_limit_exceeded_total'],
    tests: [
      'apps/api/src/grpc/public-calls.spec.ts',
      'apps/api/src/grpc/grpc-port.spec.ts',
      'apps/api/src/grpc/grpc-sessions.spec.ts',
      'apps/api/src/grpc/pending-calls.spec.ts',
    ],
  },
  {
    name: 'connections to Postgres',
    settings: ['databasePoolSize'],
    limits: [],
    constants: {
      TENANT_SHARE: 'libs/database/src/connection/connection-shares.ts',
      PLATFORM_SHARE: 'libs/database/src/connection/connection-shares.ts',
      LIST_SHARE: 'libs/database/src/connection/connection-shares.ts',
      POOL_SHARE: 'libs/tasks/src/relay/relay.ts',
    },
    share: 'A tenant has {TENANT_SHARE} of the pool. The tenant that has the fewest comes first.',
    details:
      'No tenant gets the {PLATFORM_SHARE} of the platform. Lists have {LIST_SHARE} of the pool, and those of a tenant half of these. ' +
      'Readers of streams together have {POOL_SHARE} of the pool. An unknown token is looked up once a minute.',
    exceeded: 'Statements wait, and fail with 503.',
    metrics: ['baton_database_connections'],
    tests: [
      'libs/database/src/connection/connection-shares.spec.ts',
      'libs/database/src/connection/database.int-spec.ts',
      'test/e2e/faults.e2e-spec.ts',
      'libs/tasks/src/relay/relay.int-spec.ts',
    ],
  },
  {
    name: 'Redis, or the queue in Postgres',
    settings: [],
    limits: ['tasksWaiting', 'runsAtOnce', 'weight'],
    constants: {},
    share:
      'The queue has one and a half entries for each worker slot. A free entry goes to the tenant that has the fewest for its `weight`.',
    exceeded: 'Runs wait in Postgres. A tenant over `tasksWaiting` gets 429.',
    metrics: ['baton_queue_depth', 'baton_runs'],
    tests: ['test/e2e/fairness.e2e-spec.ts', 'test/e2e/limits.ts'],
  },
  {
    name: 'slots of the workers',
    settings: [
      'workerConcurrency',
      'reservedSlotsPercent',
      'maxAttempts',
      'delegationDepth',
      'delegationTasks',
    ],
    limits: ['runsAtOnce', 'tokensPerDay'],
    constants: {},
    share:
      'A free slot goes to the tenant with the fewest runs in flight for its `weight`. Reserved slots are for tenants with few. A task may make a bounded number of tasks.',
    exceeded: 'Runs wait.',
    metrics: ['baton_worker_slots', 'baton_oldest_run_seconds', 'baton_tenant_runs'],
    tests: ['test/e2e/fairness.e2e-spec.ts', 'test/e2e/delegation.ts'],
  },
  {
    name: 'processes of agents in code',
    settings: [
      'executorLoadMs',
      'executorMemoryMb',
      'executorProcesses',
      'executorStallMs',
      'executorTenantProcesses',
    ],
    limits: [],
    constants: { MAX_UNREAD: 'libs/agents/src/runtimes/executor/agent-process.ts' },
    share:
      'An agent that computes for long runs in a process of its own. Processes of one tenant: the tenant with the fewest comes first.',
    details:
      'A process that sends events without waiting until the worker has read them is ended at {MAX_UNREAD} characters.',
    exceeded:
      'The process is ended, and its runs are tried again apart. Turns wait for a process of their tenant.',
    metrics: ['baton_run_seconds'],
    tests: ['test/e2e/executors.ts', 'test/e2e/agent-sandbox.e2e-spec.ts', 'test/e2e/hostile-executors.ts'],
  },
  {
    name: 'kept programs of MCP servers',
    settings: ['mcpKeptPrograms', 'mcpKeptProgramsPerTenant'],
    limits: [],
    constants: {},
    share: 'A tenant has a number of its own. A program belongs to one context and its owner.',
    exceeded:
      "The tenant's program that has waited longest ends, or that of all tenants if all are kept. If none waits, the new one ends with its turn.",
    metrics: ['baton_kept_programs', 'baton_kept_programs_ended_total'],
    tests: [
      'libs/agents/src/runtimes/llm/tools/mcp/kept-programs.spec.ts',
      'test/e2e/kept-programs.nightly-spec.ts',
    ],
  },
  {
    name: 'DNS',
    settings: ['outboundDns'],
    limits: [],
    constants: {
      MAX_AT_ONCE: 'libs/outbound/src/names/name-resolver.ts',
      MAX_WAITING: 'libs/outbound/src/names/name-resolver.ts',
    },
    share: 'A tenant has {MAX_AT_ONCE} lookups at the same time, and {MAX_WAITING} waiting ones.',
    exceeded: 'A lookup ends after 5 seconds. Further ones fail.',
    metrics: ['baton_limit_exceeded_total'],
    tests: ['libs/outbound/src/names/name-resolver.spec.ts', 'test/e2e/silent-names.nightly-spec.ts'],
  },
  {
    name: 'event loop of a worker',
    settings: ['workerConcurrency', 'reservedSlotsPercent', 'pushPerTenant'],
    limits: ['runsAtOnce'],
    constants: {
      HEAVY_RUNS: 'libs/tasks/src/runs/fair-starts.ts',
      YOUNG_RUNS: 'libs/tasks/src/runs/fair-starts.ts',
      MAX_PART_BYTES: 'libs/outbound/src/guarded-answer.ts',
      MAX_PART_CHUNKS: 'libs/outbound/src/guarded-answer.ts',
      TURN_MS: 'libs/outbound/src/answer-turns.ts',
      TENANT_TIME_SHARE: 'libs/outbound/src/answer-turns.ts',
      LARGE_WRITES_SHARE: 'libs/database/src/runs/large-write-shares.ts',
    },
    share:
      'Answers of models, tools, remote agents and receivers to a tenant take {TENANT_TIME_SHARE} of the time. ' +
      'Large appends of its runs take {LARGE_WRITES_SHARE} while other tenants append. ' +
      'Of a tenant with {HEAVY_RUNS} runs that begin, {YOUNG_RUNS} begin at a time while a tenant with fewer is active.',
    details:
      'Answers are read in parts of about {MAX_PART_BYTES} bytes, or {MAX_PART_CHUNKS} chunks. In a turn of the event loop, no part of a tenant begins after {TURN_MS} ms.',
    exceeded:
      'The connection is not read until it is its turn. Compressed answers are refused. Runs wait for the log, and for their start.',
    metrics: ['nodejs_eventloop_lag_p99_seconds', 'baton_worker_runs_held'],
    tests: [
      'libs/tasks/src/runs/fair-starts.spec.ts',
      'libs/outbound/src/answer-turns.spec.ts',
      'libs/outbound/src/outbound.spec.ts',
      'libs/database/src/runs/large-write-shares.spec.ts',
    ],
  },
  {
    name: 'outbound connections',
    settings: ['pushConcurrency', 'pushPerHost', 'pushPerTenant', 'pushResponseBytes', 'pushTimeoutMs'],
    limits: ['pushConfigs', 'webhooks'],
    constants: {
      MAX_CHECKS: 'libs/tasks/src/tool-checks/tool-checks.ts',
      MAX_INTERIM_ANSWERS: 'libs/outbound/src/guarded-answer.ts',
      MAX_SERVERS: 'libs/agents/src/runtimes/llm/tools/mcp/mcp-config.ts',
    },
    share: 'Tenants share no connection. Pushes have a share for each tenant and each host.',
    details:
      'A turn opens {MAX_SERVERS} MCP servers at most. An API checks the tools of {MAX_CHECKS} agents at a time. A server may send {MAX_INTERIM_ANSWERS} interim answers (1xx).',
    exceeded: 'Pushes wait. Connecting ends after 10 seconds.',
    metrics: ['baton_push_wait_seconds', 'baton_push_oldest_due_seconds'],
    tests: ['libs/outbound/src/outbound.spec.ts', 'test/e2e/hostile-peers.e2e-spec.ts'],
  },
  {
    name: 'disk of Postgres',
    settings: ['maxEventBytes'],
    limits: [
      'storedBytes',
      'agents',
      'secrets',
      'schedules',
      'tokens',
      'eventBytes',
      'eventsPerRun',
      'bytesPerRun',
      'eventsPerTask',
      'bytesPerTask',
      'retentionDays',
    ],
    constants: {},
    share: 'Stored bytes of a tenant, and numbers of what it keeps.',
    exceeded: '429. A run over its limits fails with the reason.',
    metrics: ['baton_tenant_stored_bytes', 'baton_limit_exceeded_total'],
    tests: ['test/e2e/limits.ts', 'libs/database/src/tenants/usage.store.int-spec.ts'],
  },
];

/** Settings whose names resemble a bound of a shared resource, and why they are none. */
export const NO_BOUNDS: Partial<Record<SettingKey, string>> = {
  pushMaxRetryMs: 'a pause between two deliveries',
  databaseReplicaMaxLagMs: 'the age of what a standby answers',
  maxClockOffsetMs: 'the difference of two clocks at the start',
};
