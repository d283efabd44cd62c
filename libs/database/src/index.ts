export * from './catalog/catalog-records.js';
export * from './audit/audit-records.js';
export { type AuditQuery, AuditStore } from './tenants/audit.store.js';
export * from './tasks/task-records.js';
export * from './tenants/tenant-records.js';
export type { RunKey, RunToEnqueue } from './dispatch/run-key.js';
export { awaitMigrations, pendingText } from './migrations/await-migrations.js';
export { Database, type DatabaseOptions } from './connection/database.js';
export { DatabaseModule } from './database.module.js';
export { GroupCommit } from './connection/group-commit.js';
export { CatalogClient } from './connection/catalog-client.js';
export { NameTakenError } from './connection/name-taken-error.js';
export { ClockWatch } from './connection/clock-watch.js';
export { type OpenVersion } from './runs/open-by-version.js';
export type { RunVersion } from './runs/agent-version.js';
export { BulkStore, MAX_RUNNING } from './bulk/bulk.store.js';
export {
  BULK_ACTIONS,
  type BulkAction,
  type BulkCaller,
  type BulkCursor,
  type BulkFailure,
  type BulkFilter,
  type BulkOperation,
  type BulkProgress,
  type ClaimedBulk,
} from './bulk/bulk-records.js';
export { DatabaseUnavailableError } from './connection/database-unavailable-error.js';
export { type Backoff, isTransient, isUnstorable, retryTransient } from './connection/transient.js';
export type { HeartbeatEvent } from './runs/leases/lease-beat.js';
export type { LeaseKey } from './runs/leases/lease-key.js';
export { LeaseKeeper } from './runs/leases/lease-keeper.js';
export { DatabaseSetupError } from './connection/database-setup-error.js';
export { type InstallationState, InstallationStore } from './inspection/installation.store.js';
export { hasMasterKey } from './inspection/has-master-key.js';
export { type DatabaseFacts, inspectDatabase, inspectPooler } from './inspection/inspect-database.js';
export { projectFolder } from './connection/migrations-folder.js';
export { migrate } from './migrations/migrate.js';
export { ensureAuditGuard } from './migrations/audit-guard.js';
export { ensureSystemKey } from './migrations/system-key.js';
export { exportTenant, type TenantExport } from './backup/tenant-export.js';
export { importTenant, type TenantImport } from './backup/tenant-import.js';
export type { Manifest } from './backup/archive.js';
export { verifyBackup } from './backup/verify-backup.js';
export { BackupError } from './backup/backup-error.js';
export { type Backup, backUp, releaseOf } from './backup/backup.js';
export { type Restored, restoreBackup } from './backup/restore.js';
export { roleOf } from './migrations/role-rights.js';
export type { ListedTasks } from './tasks/listed-tasks.js';
export type { WaitingTask } from './tasks/waiting-tasks.js';
export { COUNTED_EXACTLY, type CountCursor } from './tasks/task-list.js';
export type { LogSnapshot } from './log/log-snapshot.js';
export type { ArtifactPage } from './tasks/task-reader.js';
export { TaskStore } from './tasks/task.store.js';
export type { LoggedStatus } from './log/read-statuses.js';
export { type CanceledSteps, CompensationStore } from './after-cancel/compensation.store.js';
export * from './oauth/oauth-connection-records.js';
export { OAuthConnectionStore } from './oauth/oauth-connection.store.js';
export { OAuthSignInStore, type SealedOAuthClient } from './oauth/oauth-sign-in.store.js';
export { type CanceledCalls, RemoteCallStore } from './after-cancel/remote-call.store.js';
export { TaskTreeStore, type SweepCursor } from './delegation/task-tree.store.js';
export { TooManyChildrenError } from './tasks/too-many-children-error.js';
export { ParentOverError } from './tasks/parent-over-error.js';
export { ApproverError } from './tasks/approver-error.js';
export { StorageFullError } from './tasks/storage-full-error.js';
export { TooManyWaitingError } from './tasks/too-many-waiting-error.js';
export {
  CAP_KINDS,
  CAP_PERIODS,
  type CapKind,
  type CapPeriod,
  type CapSetter,
  EACH,
  type FullCap,
  ON_LIMIT,
  type OnLimit,
  type SpendingCap,
  type SpendingCapUse,
} from './spending/cap-records.js';
export { type SpendingWarning, SpendingWarningStore } from './spending/spending-warning.store.js';
export { type SpendingCharge, SpendingChargeStore } from './usage/spending-charge.store.js';
export { MAX_CAPS, SpendingCapStore } from './spending/spending-cap.store.js';
export {
  type ModelCallTokens,
  type RefusedReservation,
  type SpendingAllowance,
  type TokenReservation,
  TokenUsageStore,
} from './usage/token-usage.store.js';
export { LimitReachedError } from './tenants/limit-reached-error.js';
export {
  USAGE_DAYS,
  USAGE_KEY_NAMES,
  type UsageFilter,
  UsageHoursStore,
  type UsageKey,
  type UsageReport,
  type UsageSums,
} from './usage/usage-hours.store.js';
export { type AgentTimes, TIMED_AGENTS, TIMED_TASKS, type TimedTasks } from './usage/agent-times.js';
export {
  type LimitUse,
  type StoredBytes,
  type TenantLoad,
  type TenantUsage,
  UsageStore,
} from './tenants/usage.store.js';
export {
  ContextStateStore,
  type ContextValue,
  type ContextWrite,
  type ContextWriteResult,
} from './runs/context-state.store.js';
export { CallRecordStore, type StoredCallRecord } from './runs/call-record.store.js';
export { type ConsoleLine, type ConsoleLineRecord, ConsoleLineStore } from './runs/console-line.store.js';
export { EFFECT_OUTCOMES, type EffectOutcome, type EffectRecord } from './runs/effect-entries.js';
export { type JournalRecord, JournalStore } from './runs/journal.store.js';
export type { ModelCallRecord } from './runs/model-call-entries.js';
export type { StepRecord } from './runs/step-entries.js';
export type { OpenCallRecord, ToolCallRecord } from './runs/tool-call-entries.js';
export {
  type ForkedTurn,
  type JournalCopy,
  type OutlinedEntry,
  TaskForkStore,
} from './runs/task-fork.store.js';
export { RetentionStore } from './retention/retention.store.js';
export { DeadLetterStore, type LetterPage } from './runs/dead-letter.store.js';
export { type ParkedRun } from './dispatch/parked-run.js';
export type { ActiveRunCounts } from './runs/active-run-counts.js';
export type { RunError, RunErrorRecord } from './runs/run-error.js';
export type { RunEvent } from './dispatch/run-history.js';
export type { RunRecord } from './runs/run-record.js';
export { RunStore } from './runs/run.store.js';
export type { SweepFindings } from './runs/sweep-findings.js';
export { type StreamClaim, StreamCountStore } from './tenants/stream-count.store.js';
export { DispatchStore, type Grant, type SlotUsage } from './dispatch/dispatch.store.js';
export {
  type QueueState,
  QueueStore,
  RUN_CLASSES,
  type RunsOfClass,
  type WaitingRun,
} from './dispatch/queue.store.js';
export {
  type KnownWorker,
  type StoredLoadFailure,
  type WorkerLoad,
  type WorkerProcess,
  type WorkerRank,
  WorkerStore,
} from './dispatch/worker.store.js';
export {
  OPERATOR_ROLES,
  type OperatorRole,
  type OperatorToken,
  OperatorTokenStore,
} from './tenants/operator-token.store.js';
export { TenantRemovalStore } from './tenants/tenant-removal.store.js';
export { TenantStore } from './tenants/tenant.store.js';
export { IssuerStore } from './issuers/issuer.store.js';
export { type TokenPosition, TokenStore } from './tenants/token.store.js';
export { AgentCatalogStore } from './catalog/agent-catalog.store.js';
export { type FailingNext, FailingNextStore } from './catalog/failing-next.store.js';
export { agentSummary, AgentStore } from './catalog/agent.store.js';
export { SecretStore } from './catalog/secret.store.js';
export {
  type WebhookDelivery,
  WebhookDeliveryStore,
  type WebhookHealth,
} from './push/webhook-delivery.store.js';
export { type DeadPush, type DeadPushPage, DeadPushStore } from './push/dead-push.store.js';
export {
  type NewPushConfig,
  type PushConfig,
  type PushConfigKey,
  PushConfigStore,
  type TurnPush,
} from './push/push-config.store.js';
export { PushConfigTakenError } from './push/push-config-taken-error.js';
export {
  type ClaimedPush,
  type ClaimLimits,
  PUSH_MODES,
  PushDeliveryStore,
  type PushFailure,
  type PushMode,
  type PushProtocol,
} from './push/push-delivery.store.js';
export type { PushExchange, PushTry, TriedReceiver } from './push/push-tries.js';
export { type TaskReminder, TaskReminderStore } from './tasks/task-reminder.store.js';
export { type PushReceiver, PushReceiverStore } from './push/push-receiver.store.js';
export * from './schedules/schedule-records.js';
export { ScheduleStore } from './schedules/schedule.store.js';
export {
  type NewWebhook,
  type Webhook,
  type NotifiedWebhook,
  type WebhookPatch,
  type WebhookTarget,
  WebhookStore,
} from './push/webhook.store.js';
export { HostStore, hostName } from './catalog/host.store.js';
