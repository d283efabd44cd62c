import { Environment, masterKeyIdsOf } from '@baton/config';
import { counter, countDatabaseTimeouts, gauge, Logger, Metrics } from '@baton/telemetry';
import { Global, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { FailingNextStore } from './catalog/failing-next.store.js';
import { AgentCatalogStore } from './catalog/agent-catalog.store.js';
import { AgentStore } from './catalog/agent.store.js';
import { type AuditRecord, auditJson } from './audit/audit-records.js';
import { AuditStore } from './tenants/audit.store.js';
import { ClockWatch } from './connection/clock-watch.js';
import { CatalogClient } from './connection/catalog-client.js';
import { Database } from './connection/database.js';
import { DeadLetterStore } from './runs/dead-letter.store.js';
import { DispatchStore } from './dispatch/dispatch.store.js';
import { QueueStore } from './dispatch/queue.store.js';
import { OAuthConnectionStore } from './oauth/oauth-connection.store.js';
import { OAuthSignInStore } from './oauth/oauth-sign-in.store.js';
import { RemoteCallStore } from './after-cancel/remote-call.store.js';
import { TaskTreeStore } from './delegation/task-tree.store.js';
import { HostStore } from './catalog/host.store.js';
import { InstallationStore } from './inspection/installation.store.js';
import { IssuerStore } from './issuers/issuer.store.js';
import { CallRecordStore } from './runs/call-record.store.js';
import { ConsoleLineStore } from './runs/console-line.store.js';
import { ContextStateStore } from './runs/context-state.store.js';
import { JournalStore } from './runs/journal.store.js';
import { CompensationStore } from './after-cancel/compensation.store.js';
import { TaskForkStore } from './runs/task-fork.store.js';
import { PushConfigStore } from './push/push-config.store.js';
import { RetentionStore } from './retention/retention.store.js';
import { WebhookDeliveryStore } from './push/webhook-delivery.store.js';
import { DeadPushStore } from './push/dead-push.store.js';
import { PushDeliveryStore } from './push/push-delivery.store.js';
import { PushReceiverStore } from './push/push-receiver.store.js';
import { ReadReplica } from './connection/read-replica.js';
import { DatabaseSetupError } from './connection/database-setup-error.js';
import { RunStore } from './runs/run.store.js';
import { ScheduleStore } from './schedules/schedule.store.js';
import { SecretStore } from './catalog/secret.store.js';
import { StreamCountStore } from './tenants/stream-count.store.js';
import { TaskStore } from './tasks/task.store.js';
import { OperatorTokenStore } from './tenants/operator-token.store.js';
import { TenantRemovalStore } from './tenants/tenant-removal.store.js';
import { TenantStore } from './tenants/tenant.store.js';
import { TokenStore } from './tenants/token.store.js';
import { SpendingCapStore } from './spending/spending-cap.store.js';
import { SpendingChargeStore } from './usage/spending-charge.store.js';
import { SpendingWarningStore } from './spending/spending-warning.store.js';
import { TaskReminderStore } from './tasks/task-reminder.store.js';
import { TokenUsageStore } from './usage/token-usage.store.js';
import { WorkerStore } from './dispatch/worker.store.js';
import { UsageHoursStore } from './usage/usage-hours.store.js';
import { UsageStore } from './tenants/usage.store.js';
import { BulkStore } from './bulk/bulk.store.js';
import { WebhookStore } from './push/webhook.store.js';

const STORES = [
  AuditStore,
  DeadLetterStore,
  CallRecordStore,
  ConsoleLineStore,
  ContextStateStore,
  JournalStore,
  TaskForkStore,
  RetentionStore,
  OperatorTokenStore,
  TenantRemovalStore,
  TenantStore,
  UsageStore,
  UsageHoursStore,
  TokenUsageStore,
  SpendingCapStore,
  SpendingChargeStore,
  SpendingWarningStore,
  TaskReminderStore,
  FailingNextStore,
  InstallationStore,
  IssuerStore,
  TokenStore,
  AgentStore,
  AgentCatalogStore,
  HostStore,
  SecretStore,
  StreamCountStore,
  DispatchStore,
  WorkerStore,
  QueueStore,
  RemoteCallStore,
  CompensationStore,
  TaskTreeStore,
  ScheduleStore,
  PushConfigStore,
  PushDeliveryStore,
  PushReceiverStore,
  DeadPushStore,
  WebhookDeliveryStore,
  BulkStore,
  WebhookStore,
  OAuthConnectionStore,
  OAuthSignInStore,
];

/** One line of JSON for programs that collect standard output. */
const printAuditRecord = (record: AuditRecord): void => {
  process.stdout.write(`${JSON.stringify({ type: 'audit', ...auditJson(record) })}\n`);
};

const CONNECTIONS = gauge('baton_database_connections', 'Connections of this process to Postgres by state', [
  'state',
]);

const DISK_FULL = gauge(
  'baton_database_disk_full',
  '1 if Postgres could not write in the last half minute, because its disk is full; else 0',
);

const KEY_WRONG = gauge(
  'baton_master_key_wrong',
  '1 if the database has another master key than this process, since it was changed; else 0',
);

const LIST_READS = counter(
  'baton_list_reads_total',
  'Reads that a standby may answer (DATABASE_REPLICA_URL), by the server that has answered',
  ['server'],
  [{ server: 'replica' }, { server: 'primary' }],
);

/** The database of the process, with its replica if one is set. */
function openDatabase(environment: Environment, logger: Logger, metrics: Metrics): Database {
  const { databaseReplicaUrl, databaseReplicaMaxLagMs: maxLagMs } = environment;
  const options = {
    systemKey: environment.databaseSystemKey,
    poolSize: environment.databasePoolSize,
    isPooled: environment.isDatabasePooled,
    allowRlsBypass: environment.allowRlsBypass,
    onGivenUp: countDatabaseTimeouts(metrics),
  };
  const onAudit = environment.auditStdout ? printAuditRecord : undefined;
  const masterKeys = masterKeyIdsOf(environment);
  const onDiskFull = (error: unknown): void =>
    logger.error('Postgres cannot write, because its disk is full: make room, or enlarge the disk', {
      err: error,
    });
  if (databaseReplicaUrl === undefined) {
    return new Database({ ...options, url: environment.databaseUrl, masterKeys, onAudit, onDiskFull });
  }
  const reads = metrics.get(LIST_READS);
  const onChange = (reason: string | undefined): void =>
    reason === undefined
      ? logger.info('the replica of Postgres serves lists')
      : logger.warn('the replica of Postgres is not usable: the primary serves lists', { reason });
  return new Database({
    ...options,
    url: environment.databaseUrl,
    masterKeys,
    onAudit,
    onDiskFull,
    replica: (primary) =>
      new ReadReplica({
        primary,
        maxLagMs,
        onChange,
        standby: new Database({ ...options, url: databaseReplicaUrl, timeouts: REPLICA_TIMEOUTS }),
        onRead: (server) => reads.inc({ server }),
      }),
  });
}

/** Short: the primary answers as well. */
const REPLICA_TIMEOUTS = { connectMs: 2_000, statementMs: 8_000, answerMs: 10_000 };

/** The stores of a process and their connections. The connections are closed last. */
@Global()
@Module({
  providers: [
    {
      provide: Database,
      useFactory: openDatabase,
      inject: [Environment, Logger, Metrics],
    },
    {
      provide: CatalogClient,
      // People do not change much at a time: a quarter of the other pool is enough.
      useFactory: (
        { databaseDirectUrl, databaseSystemKey, databasePoolSize, auditStdout }: Environment,
        database: Database,
        metrics: Metrics,
      ) =>
        new CatalogClient(databaseDirectUrl, {
          systemKey: databaseSystemKey,
          poolSize: Math.max(2, Math.ceil(databasePoolSize / 4)),
          onAudit: auditStdout ? printAuditRecord : undefined,
          onGivenUp: countDatabaseTimeouts(metrics),
          database,
        }),
      inject: [Environment, Database, Metrics],
    },
    {
      provide: TaskStore,
      useFactory: (database: Database, { taskReadBytes }: Environment) =>
        new TaskStore(database, taskReadBytes),
      inject: [Database, Environment],
    },
    {
      provide: RunStore,
      // A worker holds the tasks of all its runs. The API holds a task while it answers.
      useFactory: (database: Database, { taskReadBytes }: Environment) =>
        new RunStore(database, taskReadBytes / 4),
      inject: [Database, Environment],
    },
    ClockWatch,
    ...STORES,
  ],
  exports: [Database, ClockWatch, TaskStore, RunStore, ...STORES],
})
export class DatabaseModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly database: Database,
    private readonly catalog: CatalogClient,
    private readonly clocks: ClockWatch,
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {}

  /**
   * Refuses to start with a role that row-level security does not bind, another master key, a wrong clock, or a database that
   * Baton cannot use. If Postgres is away, the process starts, and its first connection is checked later.
   */
  async onModuleInit(): Promise<void> {
    this.metrics.onScrape(async () => {
      const states = Object.entries(this.database.connections);
      for (const [state, count] of states) this.metrics.get(CONNECTIONS).set({ state }, count);
      this.metrics.get(KEY_WRONG).set(this.database.hasWrongKey ? 1 : 0);
      this.metrics.get(DISK_FULL).set(this.database.isDiskFull ? 1 : 0);
    });
    if (this.environment.allowRlsBypass) {
      this.logger.warn(
        'ALLOW_RLS_BYPASS is set: Baton does not check that row-level security binds the role',
      );
    }
    const answers = await this.database.ping().then(
      () => true,
      (error: unknown) => {
        if (error instanceof DatabaseSetupError) throw error;
        return false;
      },
    );
    if (answers) await this.clocks.assertClose();
    this.clocks.watch();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.database.close(), this.catalog.close()]);
  }
}
