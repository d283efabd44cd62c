import {
  type Agent,
  type CallContext,
  listedAgent,
  type Operations,
  ProtocolError,
  type Scope,
  TaskState,
  tokenPrincipal,
} from '@baton/a2a';
import { ConfigModule, loadEnvironment, NO_LIMITS, type TenantLimits } from '@baton/config';
import {
  ClockWatch,
  InstallationStore,
  type ActiveRunCounts,
  AgentStore,
  AuditStore,
  Database,
  type HostBinding,
  DeadLetterStore,
  HostStore,
  OperatorTokenStore,
  OAuthConnectionStore,
  OAuthSignInStore,
  IssuerStore,
  RunStore,
  ScheduleStore,
  type SecretInfo,
  SecretStore,
  StreamCountStore,
  type TaskTreeStore,
  type CallRecordStore,
  type ConsoleLineStore,
  type JournalStore,
  TaskStore,
  TenantStore,
  TokenStore,
  type WorkerLoad,
  WorkerStore,
  UsageStore,
} from '@baton/database';
import {
  type Caller,
  LimitsService,
  type RefusedToken,
  TokenService,
  type Verification,
} from '@baton/identity';
import { type ControlMessage, Messaging, type Spending } from '@baton/messaging';
import {
  AgentDirectory,
  ArtifactPages,
  CallDetails,
  Catalog,
  FirstRequests,
  VersionsInUse,
  TaskDetails,
  TaskLogPages,
  UsageReports,
  DeadLetters,
  DeadPushes,
  OperationTable,
  EffectLedger,
  ParkedTasks,
  BoundHosts,
  PlatformService,
  OperatorLetters,
  PlatformGauges,
  PlatformReadiness,
  BulkOperations,
  TaskForks,
  TaskListing,
  TaskReplays,
  TaskTraces,
  Schedules,
  SpendingCaps,
  TasksModule,
  TenantLifecycle,
  TenantSettings,
  TenantTokens,
  ToolChecks,
  TrustedIssuers,
  WorkerWatch,
  Webhooks,
} from '@baton/tasks';
import { createLogger, Logger, TelemetryModule } from '@baton/telemetry';
import { Global, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { AddressInfo, Server } from 'node:net';
import { CardsModule } from '../../../apps/api/src/cards/cards.module.js';
import { GrpcModule } from '../../../apps/api/src/grpc/grpc.module.js';
import { HttpJsonModule } from '../../../apps/api/src/http-json/http-json.module.js';
import { JsonRpcModule } from '../../../apps/api/src/json-rpc/json-rpc.module.js';
import { McpModule } from '../../../apps/api/src/mcp/mcp.module.js';
import { ConsoleModule } from '../../../apps/api/src/console/console.module.js';
import { HealthModule } from '../../../apps/api/src/health/health.module.js';
import { HttpModule } from '../../../apps/api/src/http/http.module.js';
import { AccessModule } from '../../../apps/api/src/access/access.module.js';
import { AdminModule } from '../../../apps/api/src/admin/admin.module.js';
import { OpenApiModule } from '../../../apps/api/src/openapi/open-api.module.js';
import { RestModule } from '../../../apps/api/src/rest/rest.module.js';
import { createFastifyAdapter, listen, prepareApi, shutDown } from '../../../apps/api/src/server.js';
import { sampleTask } from './samples.js';

/** Tokens by their secret, of `tenant-1` unless another is named. Any other secret is refused. */
const TOKENS: Record<string, { scopes: readonly Scope[]; tenantId?: string }> = {
  caller: { scopes: ['agents:call'] },
  reader: { scopes: ['tasks:read'] },
  author: { scopes: ['tasks:read', 'agents:write'] },
  inspector: { scopes: ['tasks:read', 'records:read'] },
  admin: { scopes: ['admin'] },
  scheduler: { scopes: ['schedules:write'] },
  nobody: { scopes: [] },
  stranger: { scopes: ['agents:call'], tenantId: 'tenant-2' },
};

/** An agent of `tenant-1`; change what a test is about. */
export function agentOf(definition: Partial<Agent['definition']> = {}, slug = 'echo'): Agent {
  return {
    id: slug,
    slug,
    origin: 'builtin',
    definition: {
      name: slug,
      description: `The agent ${slug}`,
      version: '1.0.0',
      runtime: slug,
      config: {},
      skills: [],
      inputModes: [],
      outputModes: [],
      extensions: [],
      ...definition,
    },
  };
}

/** Postgres and messaging as the health checks see them; a test may break them. */
export interface FakeServices {
  /** Postgres has no connection left. */
  isFull?: boolean;
  isReadOnly?: boolean;
  ping(): Promise<void>;
  pendingMigrations(): Promise<string[]>;
  countActive(): Promise<ActiveRunCounts>;
  load(): Promise<WorkerLoad>;
}

/** What the stores have of one task. */
interface StoredReads {
  relations: TaskTreeStore['find'];
  descendants: TaskTreeStore['descendants'];
  firstDetails: TaskStore['firstDetails'];
  eventTimes: TaskStore['eventTimes'];
  lastError: RunStore['lastError'];
  runs: RunStore['ofTask'];
  steps: JournalStore['steps'];
  modelCalls: JournalStore['modelCalls'];
  entry: JournalStore['entry'];
  modelStep: JournalStore['modelStep'];
  consoleLines: ConsoleLineStore['read'];
  record: CallRecordStore['read'];
}

/** A whole API over loopback whose use cases are the test's own. */
export interface FakeApi {
  app: NestFastifyApplication;
  url: string;
  /** URL of the management port. */
  managementUrl: string;
  /** Address of the gRPC port, if the environment has one. */
  grpcAddress: string;
  /** What each operation does; one that is not set fails as a bug would. */
  operations: Partial<Operations>;
  agents: Agent[];
  /** Those of `agents` that are in the tenant's own catalog. */
  own: Agent[];
  /** Slug of the agent that a task belongs to, by the id of the task. */
  agentOfTask: Record<string, string>;
  /** Host names that the operator has bound. A binding is looked up at most once a second. */
  hosts: HostBinding[];
  /** What requests are made of. */
  listing: Pick<TaskListing, 'list' | 'search' | 'answerable' | 'counts'>;
  /** What tasks have used. */
  usageReports: Pick<UsageReports, 'read' | 'agentTimes'>;
  stored: StoredReads;
  /** What happened in a task. */
  traces: Pick<TaskTraces, 'read'>;
  /** Tasks that wait for other code. */
  parked: Pick<ParkedTasks, 'resume'>;
  /** What a replay of a task needs. */
  replays: Pick<TaskReplays, 'build'>;
  /** A page of a task's artifacts. */
  artifactPages: Pick<ArtifactPages, 'page'>;
  /** What becomes of schedules. */
  schedules: Partial<Pick<Schedules, 'page' | 'find' | 'create' | 'change' | 'remove' | 'run'>>;
  /** Limits by tenant id. All other tenants have none. */
  limits: Record<string, Partial<TenantLimits>>;
  /** URLs of the issuers that a tenant trusts, by its id; `''` is the only tenant of the installation. */
  issuers: Record<string, string[]>;
  /** Ids of the tenants that are suspended. */
  suspended: Set<string>;
  /** Where streams of limited tenants are counted; every claim is granted. */
  counts: Pick<StreamCountStore, 'claim' | 'report' | 'touch'>;
  database: FakeServices;
  messaging: {
    ping(): Promise<void>;
    spend(key: string, max: number, perSeconds: number): Promise<Spending>;
  };
  /** Why tokens are no longer good, by their secret. */
  refused: Map<string, RefusedToken>;
  /** When tokens expire, by their secret. */
  expiresAt: Record<string, Date>;
  /** What tokens may do besides their scopes, by their secret. */
  rights: Record<string, Pick<Caller, 'agents' | 'requestsPerSecond'>>;
  /** Delivers a control message of another process. */
  control(message: ControlMessage): void;
  /** Every line of the log, parsed. */
  log: Record<string, unknown>[];
  /** POST a JSON-RPC request to `/agents/echo` with a token that may call. */
  rpc(body: unknown, headers?: Record<string, string>, path?: string): Promise<Response>;
  close(): Promise<void>;
}

/** @param source environment on top of the defaults, e.g. `{ SSE_HEARTBEAT_MS: '10' }` */
export async function startFakeApi(source: Record<string, string> = {}): Promise<FakeApi> {
  const environment = loadEnvironment({
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    // Tests ask much without a token, from one address.
    UNAUTHENTICATED_PER_SECOND: '0',
    API_GRACE_MS: '200',
    ...source,
  });
  const fakes = createFakes();
  const testing = await Test.createTestingModule({
    imports: [
      ConfigModule.use(environment),
      TelemetryModule.named('api'),
      fakesModule(fakes),
      AccessModule,
      HttpModule,
      JsonRpcModule,
      HttpJsonModule,
      McpModule,
      GrpcModule,
      CardsModule,
      RestModule,
      AdminModule,
      OpenApiModule,
      HealthModule,
      ConsoleModule,
    ],
  })
    .overrideModule(TasksModule)
    .useModule(tasksModule(fakes))
    .overrideProvider(TokenService)
    .useValue({ verify: verifier(fakes), refused: refuser(fakes) })
    .overrideProvider(Logger)
    .useValue(
      createLogger({ logLevel: 'debug' }, 'api', {
        write: (line) => fakes.log.push(JSON.parse(line) as Record<string, unknown>),
      }),
    )
    .compile();
  const app = testing.createNestApplication<NestFastifyApplication>(createFastifyAdapter(environment), {
    bodyParser: false,
  });
  prepareApi(app);
  const { url: publicUrl, managementUrl = '', grpcPort } = await listen(app);
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  // A URL that a test gives leads nowhere.
  const url = source.PUBLIC_URL === undefined ? publicUrl : `http://localhost:${String(port)}`;
  return {
    ...fakes,
    app,
    url,
    managementUrl,
    grpcAddress: `127.0.0.1:${String(grpcPort)}`,
    rpc: (body, headers, path = '/agents/echo') => post(url + path, body, headers),
    close: () => shutDown(app),
  };
}

type Fakes = Omit<FakeApi, 'app' | 'url' | 'managementUrl' | 'grpcAddress' | 'rpc' | 'close'> & {
  /** Who listens to control messages. */
  listeners: Set<(message: ControlMessage) => void>;
};

const createFakes = (listeners: Fakes['listeners'] = new Set()): Fakes => ({
  listeners,
  control: (message) => listeners.forEach((listener) => listener(message)),
  refused: new Map(),
  expiresAt: {},
  rights: {},
  operations: {},
  agents: [agentOf(), agentOf({}, 'index')],
  own: [],
  agentOfTask: {},
  hosts: [],
  schedules: {},
  traces: { read: async () => ({ spans: [], modelCalls: [] }) },
  parked: { resume: async () => false },
  replays: { build: async () => undefined },
  listing: {
    search: async () => ({ tasks: [], searched: 0 }),
    list: async () => ({ tasks: [], more: false }),
    answerable: async () => ({ tasks: [] }),
    counts: async () => new Map(),
  },
  usageReports: {
    read: async () => ({ sums: [], isWhole: true }),
    agentTimes: async () => [],
  },
  stored: {
    relations: async () => ({
      owner: null,
      parentTaskId: null,
      childTaskIds: [],
      agentVersion: null,
      events: 1,
      createdAt: undefined,
      wakesAt: null,
      reminders: [],
    }),
    descendants: async () => [],
    firstDetails: async () => undefined,
    eventTimes: async () => [],
    lastError: async () => undefined,
    runs: async () => [],
    steps: async () => [],
    modelCalls: async () => [],
    entry: async () => undefined,
    modelStep: async () => undefined,
    consoleLines: async () => [],
    record: async () => undefined,
  },
  artifactPages: { page: async () => ({ head: 1, pieces: [], next: undefined }) },
  limits: {},
  issuers: {},
  suspended: new Set(),
  counts: {
    claim: async ({ wanted }) => wanted,
    report: async () => undefined,
    touch: async () => new Map(),
  },
  database: {
    ping: async () => undefined,
    pendingMigrations: async () => [],
    countActive: async () => ({
      states: { queued: { runs: 2, oldestSeconds: 3 } },
      tenants: [{ tenant: 'acme', state: 'queued', runs: 2 }],
    }),
    load: async () => ({ liveWorkers: 1, oldestWaitingSeconds: 0 }),
  },
  messaging: { ping: async () => undefined, spend: async () => ({ allowed: true, retryAfterMs: 0 }) },
  log: [],
});

function fakesModule({
  database,
  messaging,
  hosts,
  issuers,
  limits,
  suspended,
  counts,
  listeners,
}: Fakes): new () => object {
  const unused = [TaskStore, TenantStore, TokenStore, AgentStore, DeadLetterStore];
  const providers = [
    ...unused.map((provide) => ({ provide, useValue: {} })),
    { provide: IssuerStore, useValue: { urls: async (tenantId = '') => issuers[tenantId] ?? [] } },
    { provide: OperatorTokenStore, useValue: { byHash: async () => undefined } },
    {
      provide: Database,
      useValue: {
        ping: () => database.ping(),
        pendingMigrations: () => database.pendingMigrations(),
        assertMasterKey: async () => undefined,
        get isFull() {
          return database.isFull === true;
        },
        get isReadOnly() {
          return database.isReadOnly === true;
        },
      },
    },
    {
      provide: HostStore,
      useValue: { find: async (name: string) => hosts.find(({ host }) => host === name) },
    },
    {
      provide: LimitsService,
      useValue: {
        get: async (id: string) => ({ ...NO_LIMITS, ...limits[id] }),
        isNamed: async (id: string, name: string) => name === id,
        slugOf: async (id: string) => `slug of ${id}`,
        assertActive: async (id: string) => {
          if (suspended.has(id)) {
            throw new ProtocolError('tenant-suspended', 'the tenant is suspended: unpaid bill');
          }
        },
        inactive: async (ids: readonly string[]) => new Set(ids.filter((id) => suspended.has(id))),
      },
    },
    { provide: StreamCountStore, useValue: counts },
    // The audit log is tested on a real database: rest/audit/audit.int-spec.ts.
    { provide: AuditStore, useValue: { list: async () => [], write: async () => undefined } },
    { provide: SecretStore, useValue: secretStore() },
    // Sign-ins at servers are tested on a real database: oauth-connections.int-spec.ts.
    { provide: OAuthConnectionStore, useValue: { list: async () => [], remove: async () => undefined } },
    { provide: OAuthSignInStore, useValue: { find: async () => undefined } },
    { provide: WorkerStore, useValue: { load: () => database.load() } },
    { provide: RunStore, useValue: { countActive: () => database.countActive() } },
    { provide: UsageStore, useValue: { largest: async () => [] } },
    { provide: ScheduleStore, useValue: { overdueSeconds: async () => 0 } },
    {
      provide: Messaging,
      useValue: {
        driver: 'postgres',
        ping: () => messaging.ping(),
        refusal: async () => undefined,
        evictionPolicy: async () => undefined,
        spend: (...spent: Parameters<Messaging['spend']>) => messaging.spend(...spent),
        subscribeControl: async (listener: (message: ControlMessage) => void) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
        onSignalsMissed: () => () => undefined,
        queueDepth: async () => ({ waiting: 3, active: 1 }),
      },
    },
  ];
  @Global()
  @Module({ providers, exports: providers.map(({ provide }) => provide) })
  class FakesModule {}
  return FakesModule;
}

/** Secrets of the test's tenants, which live as long as the API. */
function secretStore(): Pick<SecretStore, 'put' | 'setOrigins' | 'list' | 'remove'> {
  const kept = new Map<string, SecretInfo & { tenantId: string }>();
  const at = new Date('2026-01-31T12:00:00.000Z');
  return {
    put: async ({ tenantId, name }, { keyId }, origins, otherwise) => {
      const info = { name, keyId, origins: origins ?? otherwise, createdAt: at, updatedAt: at };
      kept.set(`${tenantId}/${name}`, { ...info, tenantId });
      return info;
    },
    setOrigins: async ({ tenantId, name }, origins) => {
      const info = kept.get(`${tenantId}/${name}`);
      if (info) info.origins = origins;
      return info;
    },
    list: async (tenantId, page) =>
      [...kept.values()]
        .filter((each) => each.tenantId === tenantId && each.name > (page?.after ?? ''))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .slice(0, page?.limit),
    remove: async ({ tenantId, name }) => kept.delete(`${tenantId}/${name}`),
  };
}

/** The use cases of the API of operators. */
const OPERATORS = [
  PlatformService,
  OperatorLetters,
  BoundHosts,
  TrustedIssuers,
  TenantLifecycle,
  TenantSettings,
];

const READERS = [TaskDetails, TaskLogPages, CallDetails, FirstRequests];

/** The use cases that read one task, on the fakes of their stores. */
function readersOf(stored: StoredReads) {
  const tasks = {
    firstDetails: (...of) => stored.firstDetails(...of),
    eventTimes: (...of) => stored.eventTimes(...of),
  } as TaskStore;
  const runs = {
    lastError: (...of) => stored.lastError(...of),
    ofTask: (...of) => stored.runs(...of),
  } as RunStore;
  const taskTree = {
    find: (tenantId: string, taskId: string) => stored.relations(tenantId, taskId),
    descendants: (tenantId: string, taskId: string) => stored.descendants(tenantId, taskId),
  } as TaskTreeStore;
  const journals = {
    steps: (...of: Parameters<JournalStore['steps']>) => stored.steps(...of),
    modelCalls: (...of: Parameters<JournalStore['modelCalls']>) => stored.modelCalls(...of),
    entry: (...of: Parameters<JournalStore['entry']>) => stored.entry(...of),
    modelStep: (...of: Parameters<JournalStore['modelStep']>) => stored.modelStep(...of),
  } as unknown as JournalStore;
  const consoles = {
    read: (...of: Parameters<ConsoleLineStore['read']>) => stored.consoleLines(...of),
  } as ConsoleLineStore;
  const records = {
    read: (...of: Parameters<CallRecordStore['read']>) => stored.record(...of),
  } as CallRecordStore;
  return [
    { provide: TaskDetails, useValue: new TaskDetails(taskTree, runs, journals) },
    { provide: TaskLogPages, useValue: new TaskLogPages(tasks, consoles) },
    { provide: CallDetails, useValue: new CallDetails(journals, records) },
    { provide: FirstRequests, useValue: new FirstRequests(tasks) },
  ];
}

function tasksModule({
  operations,
  agents,
  own,
  agentOfTask,
  listing,
  usageReports,
  stored,
  traces,
  parked,
  replays,
  artifactPages,
  schedules,
}: Fakes): new () => object {
  const find = async (_tenantId: string, slugOrId: string) =>
    [...agents, ...own].find(({ slug }) => slug === slugOrId);
  const directory = {
    find,
    findIncludingDeleted: find,
    forget: () => undefined,
    allowed: async (_tenantId: string, slugs: string[]) => ({ slugs, ids: slugs }),
    list: async () => agents.map(listedAgent),
    slugs: async () => agents.filter(({ status }) => status === undefined).map(({ slug }) => slug),
    own: async () => own,
    ofTask: async (_caller: object, _profile: string, id: string) => find('', agentOfTask[id] ?? ''),
    defaultAgent: () => find('', 'index'),
  };
  @Module({
    providers: [
      { provide: OperationTable, useValue: { operations } },
      { provide: AgentDirectory, useValue: directory },
      // Answers about dead letters are tested in test/e2e, which has some.
      { provide: DeadLetters, useValue: { list: async () => [] } },
      { provide: DeadPushes, useValue: {} },
      { provide: VersionsInUse, useValue: {} },
      { provide: Schedules, useValue: schedules },
      // What becomes of tokens is tested on a real database: rest/tokens/tokens.int-spec.ts.
      { provide: TenantTokens, useValue: {} },
      // The same of webhooks: rest/webhooks/webhooks.int-spec.ts.
      { provide: BulkOperations, useValue: {} },
      { provide: Webhooks, useValue: {} },
      { provide: SpendingCaps, useValue: {} },
      {
        provide: TaskListing,
        useValue: {
          list: (...page: Parameters<TaskListing['list']>) => listing.list(...page),
          search: (...page: Parameters<TaskListing['search']>) => listing.search(...page),
          counts: (...of: Parameters<TaskListing['counts']>) => listing.counts(...of),
          answerable: (...page: Parameters<TaskListing['answerable']>) => listing.answerable(...page),
        },
      },
      {
        provide: UsageReports,
        useValue: {
          read: (...of: Parameters<UsageReports['read']>) => usageReports.read(...of),
          agentTimes: (...of: Parameters<UsageReports['agentTimes']>) => usageReports.agentTimes(...of),
        },
      },
      {
        provide: TaskTraces,
        useValue: { read: (...of: Parameters<TaskTraces['read']>) => traces.read(...of) },
      },
      ...readersOf(stored),
      {
        provide: TaskForks,
        useValue: { continuedAs: async () => undefined, undoneAs: async () => undefined },
      },
      {
        provide: ParkedTasks,
        useValue: { resume: (...of: Parameters<ParkedTasks['resume']>) => parked.resume(...of) },
      },
      {
        provide: TaskReplays,
        useValue: { build: (...of: Parameters<TaskReplays['build']>) => replays.build(...of) },
      },
      {
        provide: ArtifactPages,
        useValue: { page: (...of: Parameters<ArtifactPages['page']>) => artifactPages.page(...of) },
      },
      // The catalog is tested on a real database: rest/agents/agents.int-spec.ts.
      { provide: Catalog, useValue: {} },
      { provide: ToolChecks, useValue: {} },
      // It reads journals of a real database: test/e2e/effects.ts.
      { provide: EffectLedger, useValue: {} },
      // The API of operators is tested on a real database: admin/admin.int-spec.ts.
      ...OPERATORS.map((provide) => ({ provide, useValue: {} })),
      PlatformGauges,
      PlatformReadiness,
      WorkerWatch,
      { provide: ClockWatch, useValue: {} },
      {
        provide: InstallationStore,
        useValue: {
          state: async () => ({
            bytes: 1_000,
            backupAgeSeconds: undefined,
            pausedSchedules: 0,
            sleepOverdueSeconds: 0,
            parkedRuns: 0,
            endedNext: 0,
          }),
        },
      },
    ],
    exports: [
      PlatformReadiness,
      WorkerWatch,
      Catalog,
      ToolChecks,
      VersionsInUse,
      EffectLedger,
      OperationTable,
      AgentDirectory,
      BulkOperations,
      TaskForks,
      TaskListing,
      UsageReports,
      ...READERS,
      TaskTraces,
      ParkedTasks,
      TaskReplays,
      ArtifactPages,
      DeadLetters,
      DeadPushes,
      TenantTokens,
      Webhooks,
      SpendingCaps,
      Schedules,
      ...OPERATORS,
    ],
  })
  class FakeTasksModule {}
  return FakeTasksModule;
}

const verifier =
  ({ expiresAt, refused, rights }: Fakes) =>
  async (secret: string): Promise<Verification> => {
    const token = TOKENS[secret];
    const reason = token ? refused.get(secret) : 'unknown';
    if (!token || reason) return { ok: false, reason: reason ?? 'unknown' };
    const { scopes, tenantId = 'tenant-1' } = token;
    const principal = tokenPrincipal(`token-${secret}`);
    return {
      ok: true,
      caller: {
        tenantId,
        principal,
        scopes,
        expiresAt: expiresAt[secret],
        credential: secret,
        ...rights[secret],
      },
    };
  };

const refuser =
  ({ refused }: Fakes) =>
  async (callers: readonly Caller[]): Promise<Map<Caller, RefusedToken>> =>
    new Map(
      callers.flatMap((caller) => {
        const reason = refused.get(caller.credential ?? '');
        return reason ? [[caller, reason] as const] : [];
      }),
    );

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { authorization: 'Bearer caller', 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

/** A call that reached an operation. */
export interface RecordedCall {
  name: string;
  context: CallContext;
  request: unknown;
}

/** Lets the unary operations answer with samples. @returns the calls, as they come */
export function recordCalls({ operations }: FakeApi): RecordedCall[] {
  const calls: RecordedCall[] = [];
  const answers = {
    sendMessage: { $case: 'task', value: sampleTask() },
    getTask: sampleTask(),
    cancelTask: sampleTask({ status: { state: TaskState.TASK_STATE_CANCELED } as never }),
    listTasks: { tasks: [sampleTask()], nextPageToken: 'n', pageSize: 2, totalSize: 3 },
  };
  for (const [name, answer] of Object.entries(answers)) {
    Object.assign(operations, {
      [name]: async (context: CallContext, request: unknown) => {
        calls.push({ name, context, request });
        return answer;
      },
    });
  }
  return calls;
}
