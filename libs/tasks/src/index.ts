export { AgentDirectory } from './catalog/agent-directory.js';
export {
  type Author,
  Catalog,
  type CatalogWrite,
  type CatalogWriteOptions,
  type WantedNext,
} from './catalog/catalog.js';
export { BulkOperations, type BulkPreview, isSeenBy } from './bulk/bulk-operations.js';
export { DeadPushes } from './tenants/dead-pushes.js';
export { DeadLetters, refusalOf } from './dead-letters/dead-letters.js';
export { continuedBy, forkedFrom, undoneBy } from './forks/fork-metadata.js';
export { type TaskContinuation, TaskForks } from './forks/task-forks.js';
export { ArtifactPages, type ArtifactPosition, type PageOfArtifacts } from './operations/artifact-pages.js';
export { getExtendedAgentCard } from './operations/get-extended-card.js';
export { VersionsInUse } from './operations/versions-in-use.js';
export { OperationTable } from './operations/operation-table.js';
export { EffectLedger, type TaskEffect } from './operations/effect-ledger.js';
export { ParkedTasks } from './operations/parked-tasks.js';
export { TaskDetails } from './operations/task-details.js';
export { type AnswerableTask, type TaskListFilter, TaskListing } from './operations/task-listing.js';
export { TaskLogPages } from './operations/task-log-pages.js';
export { TaskReplays } from './operations/task-replays.js';
export { UsageReports } from './operations/usage-reports.js';
export { PlatformGauges } from './platform/platform-gauges.js';
export { PlatformReadiness } from './platform/platform-readiness.js';
export { WorkerWatch } from './platform/worker-watch.js';
export { ActiveRuns } from './runs/active-runs.js';
export { WorkerPresence } from './runs/worker-presence.js';
export { Schedules } from './schedules/schedules.js';
export { type CapSpec, SpendingCaps } from './spending/spending-caps.js';
export { type OpenWork, type StoppedWork } from './tenants/principal-activity.js';
export { BoundHosts, type HostTarget } from './tenants/bound-hosts.js';
export { PlatformService, type PlatformQueue } from './tenants/platform-service.js';
export { OperatorLetters, type ShownLetter } from './tenants/operator-letters.js';
export { type DeletedTenant, type Suspended, TenantLifecycle } from './tenants/tenant-lifecycle.js';
export {
  type LimitInForce,
  type LimitsInForce,
  type OfTenant,
  type TenantChange,
  TenantSettings,
} from './tenants/tenant-settings.js';
export { type RevokedToken, TenantTokens } from './tenants/tenant-tokens.js';
export { newIssuer, TrustedIssuers } from './tenants/trusted-issuers.js';
export { CallDetails } from './trace/call-details.js';
export type { SpanKind, SpanState, TraceSpan } from './trace/span.js';
export { TaskTraces } from './trace/task-traces.js';
export { FirstRequests } from './turns/first-requests.js';
export { ToolChecks } from './tool-checks/tool-checks.js';
export type { ReceiverReply } from './push/call-once.js';
export { type WebhookSpec, Webhooks } from './webhooks/webhooks.js';
export { TasksModule } from './tasks.module.js';
export { WorkerTasksModule } from './worker-tasks.module.js';

// Parameters and results of the use cases.
export type {
  AgentSummary,
  AgentVersion,
  OpenVersion,
  ApiToken,
  BulkAction,
  BulkFilter,
  BulkOperation,
  HostBinding,
  Tenant,
  TenantUsage,
  CatalogEntry,
  DeadLetter,
  DeadPush,
  PushTry,
  Descendant,
  TaskRelations,
  TrustedIssuer,
  KnownWorker,
  StoredLoadFailure,
  ConsoleLineRecord,
  RunErrorRecord,
  ParkedRun,
  RunRecord,
  StoredTask,
  Schedule,
  ModelCallRecord,
  StepRecord,
  Webhook,
  WebhookDelivery,
  WebhookHealth,
} from '@baton/database';
export {
  BULK_ACTIONS,
  CAP_KINDS,
  CAP_PERIODS,
  type CapPeriod,
  CONTEXTS,
  EFFECT_OUTCOMES,
  type EffectOutcome,
  MISSED,
  ON_LIMIT,
  OVERLAPS,
  RUN_CLASSES,
  type ScheduleSpec,
  SEARCH_PLACES,
  type SpendingCapUse,
  TIMED_AGENTS,
  TIMED_TASKS,
  USAGE_DAYS,
  USAGE_KEY_NAMES,
  type UsageKey,
  type UsageSums,
} from '@baton/database';
