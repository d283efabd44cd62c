export * from './catalog-records.js';
export * from './records.js';
export { awaitMigrations } from './await-migrations.js';
export { Database, type DatabaseOptions } from './database.js';
export { DatabaseModule } from './database.module.js';
export { CatalogClient, NameTakenError } from './catalog-client.js';
export { DatabaseUnavailableError, isTransient, isUnstorable } from './transient.js';
export type { BeatNews, LeaseKey } from './leases/lease-beat.js';
export { LeaseKeeper } from './leases/lease-keeper.js';
export { migrate } from './migrate.js';
export { BackupError, type Manifest, verifyBackup } from './backup/archive.js';
export { type Backup, backUp } from './backup/backup.js';
export { type Restored, restoreBackup } from './backup/restore.js';
export { COUNTED_EXACTLY, type CountCursor, type ListedTasks } from './task-list.js';
export type { ArtifactPage, LogCut } from './task-reader.js';
export { TaskStore } from './task.store.js';
export { FamilyStore, type SweepCursor } from './family.store.js';
export {
  ParentOverError,
  StorageFullError,
  TooManyChildrenError,
  TooManyWaitingError,
} from './turn-acceptance.js';
export { type TokenReservation, TokenUsageStore } from './token-usage.store.js';
export { UsageStore } from './usage.store.js';
export { type JournalRecord, JournalStore } from './journal.store.js';
export { RetentionStore } from './retention.store.js';
export { DeadLetterStore } from './dead-letter.store.js';
export type { RunError, RunErrorRecord } from './run-error.js';
export { RunStore } from './run.store.js';
export { type StreamClaim, StreamCountStore } from './stream-count.store.js';
export { DispatchStore, type Grant, type SlotUsage } from './dispatch.store.js';
export { type WorkerLoad, type WorkerProcess, WorkerStore } from './worker.store.js';
export { TenantStore } from './tenant.store.js';
export { TokenStore } from './token.store.js';
export { AgentCatalogStore, CatalogFullError } from './agent-catalog.store.js';
export { AgentStore } from './agent.store.js';
export { SecretStore } from './secret.store.js';
export * from './schedule-records.js';
export { ScheduleStore, TooManySchedulesError } from './schedule.store.js';
export { HostStore, hostName } from './host.store.js';
