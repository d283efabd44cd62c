import { resolve } from 'node:path';
import type { z } from 'zod';
import {
  EnvironmentError,
  type EnvironmentSource,
  processEnvironment,
  readSettings,
} from './read-settings.js';
import { settings } from './settings.js';

type Settings = z.output<typeof settings>;

/** Default of the setting; a longer lease makes it longer. */
const LOOP_STALL_MS = 15_000;

/** The limits of a tenant as the environment sets them; null = none. */
export type DefaultLimits = ReturnType<typeof defaultLimits>;

/** The typed environment of a process; inject it by class. Every key is explained in `.env.example`. */
export class Environment {
  readonly databaseUrl: string;
  readonly databasePoolSize: number;
  /** Start even if row-level security does not bind the role of `databaseUrl`. */
  readonly allowRlsBypass: boolean;
  /** Absent: messaging runs on Postgres. */
  readonly redisUrl: string | undefined;

  readonly port: number;
  readonly host: string;
  /** Where callers reach the API; without a slash at the end. */
  readonly publicUrl: string;
  readonly logLevel: Settings['LOG_LEVEL'];
  /** Absolute path of the folder of installed agents. */
  readonly agentsDir: string | undefined;
  /** 32 bytes. */
  readonly masterKey: Buffer | undefined;
  /** Earlier master keys, 32 bytes each: what they have encrypted can still be read. */
  readonly previousMasterKeys: readonly Buffer[];
  /** PEM (PKCS8) or private JWK (JSON text). */
  readonly cardSigningKey: string | undefined;

  /** Networks (`10.0.0.0/8`) and hosts (`ollama:11434`) that agents may call although they are not public. */
  readonly outboundAllow: readonly string[];

  /** Port of the worker's health listener; absent = none. */
  readonly workerPort: number | undefined;
  readonly workerConcurrency: number;
  readonly workerGraceMs: number;
  readonly apiGraceMs: number;

  readonly leaseMs: number;
  readonly leaseHeartbeatMs: number;
  /** How long the event loop of a process may stand still before the process is killed. */
  readonly loopStallMs: number;
  /** Threads for what takes more than linear time on tenants' text, and how long one piece of it may take. */
  readonly computeThreads: number;
  readonly computeTimeoutMs: number;
  readonly sweepMs: number;
  readonly maxAttempts: number;
  /** A queued run not enqueued for this long is enqueued again. */
  readonly orphanMs: number;

  /** How often a task may be handed on from agent to agent. */
  readonly delegationDepth: number;
  /** Most tasks that one may lead to by being handed on. */
  readonly delegationTasks: number;

  /** The model of the index agent as `provider/model`; undefined = it has none. */
  readonly indexModel: string | undefined;
  /** Where that model is, if not at its provider's usual address. */
  readonly indexModelUrl: string | undefined;

  /** How long a blocking send waits where a profile's callers give up. */
  readonly sendWaitMs: number;
  readonly sseHeartbeatMs: number;
  readonly sseBufferBytes: number;
  readonly sseStallMs: number;
  readonly headersTimeoutMs: number;
  /** Of a request with its body. */
  readonly requestTimeoutMs: number;
  readonly relayTickMs: number;
  readonly bodyLimitBytes: number;
  /** On the paths whose profile has small bodies. */
  readonly smallBodyLimitBytes: number;
  /** Most that one request reads of what tasks say, in bytes of JSON. */
  readonly taskReadBytes: number;
  readonly taskReadTotalBytes: number;
  readonly maxEventBytes: number;
  /** Size of the heap of an executor agent's process, in MiB. */
  readonly executorMemoryMb: number;
  /** How long such a process may give no sign of life. */
  readonly executorStallMs: number;
  /** Processes of each executor agent in a worker. */
  readonly executorProcesses: number;
  /** How long such a process is kept without a turn. */
  readonly executorIdleMs: number;
  /** What agents may start as MCP servers: each the words that a command line must begin with. */
  readonly mcpStdioAllow: readonly (readonly string[])[];
  /** A time of a schedule that is so late was missed. */
  readonly scheduleLateMs: number;
  /** How often tasks past their retention are looked for. */
  readonly retentionSweepMs: number;
  /** How long callers of a deleted task are told what became of it. */
  readonly tombstoneDays: number;
  readonly tokenCacheMs: number;
  /** How long a message that comes again joins the task that it has made. */
  readonly idempotencyHours: number;

  /** What holds for tenants for whom the operator has set nothing else; null = no limit. */
  readonly defaultLimits: DefaultLimits;

  // One line a setting.
  constructor(values: Settings) {
    this.databaseUrl = values.DATABASE_URL;
    this.databasePoolSize = values.DATABASE_POOL_SIZE;
    this.allowRlsBypass = values.ALLOW_RLS_BYPASS;
    this.redisUrl = values.REDIS_URL;
    this.port = values.PORT;
    this.host = values.HOST;
    this.publicUrl = values.PUBLIC_URL ?? `http://localhost:${values.PORT}`;
    this.logLevel = values.LOG_LEVEL;
    this.agentsDir = values.BATON_AGENTS_DIR && resolve(values.BATON_AGENTS_DIR);
    this.masterKey = values.BATON_MASTER_KEY;
    this.previousMasterKeys = values.BATON_MASTER_KEY_PREVIOUS ?? [];
    this.cardSigningKey = values.CARD_SIGNING_KEY;
    this.outboundAllow = values.OUTBOUND_ALLOW;
    this.workerPort = values.WORKER_PORT;
    this.workerConcurrency = values.WORKER_CONCURRENCY;
    this.workerGraceMs = values.WORKER_GRACE_MS;
    this.apiGraceMs = values.API_GRACE_MS;
    this.leaseMs = values.LEASE_MS;
    this.leaseHeartbeatMs = values.LEASE_HEARTBEAT_MS;
    this.loopStallMs = values.LOOP_STALL_MS ?? Math.max(LOOP_STALL_MS, values.LEASE_MS);
    this.computeThreads = values.COMPUTE_THREADS;
    this.computeTimeoutMs = values.COMPUTE_TIMEOUT_MS;
    this.sweepMs = values.SWEEP_MS;
    this.maxAttempts = values.MAX_ATTEMPTS;
    this.orphanMs = values.ORPHAN_MS;
    this.delegationDepth = values.DELEGATION_DEPTH;
    this.delegationTasks = values.DELEGATION_TASKS;
    this.indexModel = values.INDEX_MODEL;
    this.indexModelUrl = values.INDEX_MODEL_URL;
    this.sendWaitMs = values.SEND_WAIT_MS;
    this.sseHeartbeatMs = values.SSE_HEARTBEAT_MS;
    this.sseBufferBytes = values.SSE_BUFFER_BYTES;
    this.sseStallMs = values.SSE_STALL_MS;
    this.headersTimeoutMs = values.HEADERS_TIMEOUT_MS;
    this.requestTimeoutMs = values.REQUEST_TIMEOUT_MS;
    this.relayTickMs = values.RELAY_TICK_MS;
    this.bodyLimitBytes = values.BODY_LIMIT_BYTES;
    this.smallBodyLimitBytes = values.SMALL_BODY_LIMIT_BYTES;
    this.taskReadBytes = values.TASK_READ_BYTES;
    this.taskReadTotalBytes = values.TASK_READ_TOTAL_BYTES;
    this.maxEventBytes = values.MAX_EVENT_BYTES;
    this.executorMemoryMb = values.EXECUTOR_MEMORY_MB;
    this.executorStallMs = values.EXECUTOR_STALL_MS;
    this.executorProcesses = values.EXECUTOR_PROCESSES;
    this.executorIdleMs = values.EXECUTOR_IDLE_MS;
    this.mcpStdioAllow = values.MCP_STDIO_ALLOW ?? [];
    this.scheduleLateMs = values.SCHEDULE_LATE_MS;
    this.retentionSweepMs = values.RETENTION_SWEEP_MS;
    this.tombstoneDays = values.TOMBSTONE_DAYS;
    this.tokenCacheMs = values.TOKEN_CACHE_MS;
    this.defaultLimits = defaultLimits(values);
    this.idempotencyHours = values.IDEMPOTENCY_HOURS;
  }
}

function defaultLimits(values: Settings) {
  return {
    requestsPerSecond: values.LIMIT_REQUESTS_PER_SECOND ?? null,
    runsAtOnce: values.LIMIT_RUNS_AT_ONCE ?? null,
    tasksWaiting: values.LIMIT_TASKS_WAITING ?? null,
    openStreams: values.LIMIT_OPEN_STREAMS ?? null,
    bodyBytes: values.LIMIT_BODY_BYTES ?? null,
    storedBytes: values.LIMIT_STORED_BYTES ?? null,
    eventBytes: values.LIMIT_EVENT_BYTES,
    eventsPerRun: values.LIMIT_EVENTS_PER_RUN,
    bytesPerRun: values.LIMIT_BYTES_PER_RUN,
    eventsPerTask: values.LIMIT_EVENTS_PER_TASK,
    bytesPerTask: values.LIMIT_BYTES_PER_TASK,
    tokensPerDay: values.LIMIT_TOKENS_PER_DAY ?? null,
    retentionDays: values.LIMIT_RETENTION_DAYS ?? null,
  };
}

/**
 * Reads and checks the environment (by default that of the process, with `.env` of the working folder).
 * Throws EnvironmentError with one sentence per bad key; the sentences never hold the value of a secret.
 */
export function loadEnvironment(source: EnvironmentSource = processEnvironment()): Environment {
  const environment = new Environment(readSettings(settings, source));
  // Two beats must fit into a lease, or one late beat costs a healthy worker its runs.
  if (environment.leaseHeartbeatMs * 2 > environment.leaseMs) {
    throw new EnvironmentError([
      `LEASE_HEARTBEAT_MS is ${environment.leaseHeartbeatMs}: set it to at most half of LEASE_MS (${environment.leaseMs}).`,
    ]);
  }
  // A pulse is shown with every heartbeat: less than a lease would give up workers that are well.
  if (environment.loopStallMs < environment.leaseMs) {
    throw new EnvironmentError([
      `LOOP_STALL_MS is ${environment.loopStallMs}: set it to at least LEASE_MS (${environment.leaseMs}).`,
    ]);
  }
  if (environment.taskReadTotalBytes < environment.taskReadBytes) {
    throw new EnvironmentError([
      `TASK_READ_TOTAL_BYTES is ${environment.taskReadTotalBytes}: set it to at least TASK_READ_BYTES (${environment.taskReadBytes}).`,
    ]);
  }
  return environment;
}
