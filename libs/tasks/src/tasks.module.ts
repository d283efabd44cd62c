import { AgentList, AgentsModule, ChildTasks, IndexModels, SecretReader, TokenBudget } from '@baton/agents';
import { Module } from '@nestjs/common';
import { AgentDirectory } from './agent-directory.js';
import { Catalog } from './catalog/catalog.js';
import { DeadLetters } from './dead-letters/dead-letters.js';
import { DelegatedTasks } from './delegation/delegated-tasks.js';
import { FamilySweep } from './delegation/family-sweep.js';
import { Suspensions } from './delegation/suspensions.js';
import { TaskCanceler } from './delegation/task-canceler.js';
import { TenantIndexModels } from './delegation/tenant-index-models.js';
import { TurnEnds } from './delegation/turn-ends.js';
import { RunDispatcher } from './dispatch/run-dispatcher.js';
import { WorkerPresence } from './dispatch/worker-presence.js';
import { TurnIntake } from './operations/accept-turn.js';
import { ArtifactPages } from './operations/artifact-pages.js';
import { Conversation } from './operations/conversation.js';
import { TaskFinder } from './operations/find-task.js';
import { ListTotals } from './operations/list-totals.js';
import { MessageRouter } from './operations/message-router.js';
import { RequestListing } from './operations/request-listing.js';
import { CancelOperation } from './operations/cancel-task.js';
import { OperationTable } from './operations/operation-table.js';
import { ReadOperations } from './operations/read-tasks.js';
import { SendOperations } from './operations/send-message.js';
import { SubscribeOperation } from './operations/subscribe-to-task.js';
import { PlatformGauges } from './platform-gauges.js';
import { PlatformReadiness } from './platform-readiness.js';
import { Relay } from './relay/relay.js';
import { ActiveRuns } from './runs/active-runs.js';
import { Quarantine } from './runs/quarantine.js';
import { RunConsumer } from './runs/run-consumer.js';
import { RunExecutor, RunPorts, RunStores } from './runs/run-executor.js';
import { Sweeper } from './runs/sweeper.js';
import { RetentionSweep } from './retention/retention-sweep.js';
import { ScheduleClock } from './schedules/schedule-clock.js';
import { ScheduleFiring } from './schedules/schedule-firing.js';
import { ScheduleSettler } from './schedules/schedule-settler.js';
import { Schedules } from './schedules/schedules.js';
import { TenantSecrets } from './runs/tenant-secrets.js';
import { WorkerIdentity } from './runs/worker-identity.js';
import { WorkerWatch } from './worker-watch.js';
import { TenantTokens } from './usage/tenant-tokens.js';
import { UsageCount } from './usage/usage-count.js';

/** The use cases, for the API: everything a caller can ask. It executes nothing. */
@Module({
  providers: [
    AgentDirectory,
    Catalog,
    Relay,
    TaskFinder,
    Conversation,
    RunDispatcher,
    TurnIntake,
    MessageRouter,
    ...[RequestListing, ArtifactPages],
    SendOperations,
    ReadOperations,
    ListTotals,
    ...[CancelOperation, TaskCanceler, Suspensions],
    SubscribeOperation,
    OperationTable,
    DeadLetters,
    ...[Schedules, ScheduleFiring],
    ...[PlatformGauges, PlatformReadiness, WorkerWatch],
  ],
  exports: [
    PlatformReadiness,
    AgentDirectory,
    Catalog,
    DeadLetters,
    Schedules,
    ...[RequestListing, ArtifactPages],
    OperationTable,
    Relay,
  ],
})
export class TasksModule {}

/** What runtimes may ask the platform for, and what that needs. */
@Module({
  providers: [
    AgentDirectory,
    { provide: AgentList, useExisting: AgentDirectory },
    { provide: SecretReader, useClass: TenantSecrets },
    { provide: TokenBudget, useClass: TenantTokens },
    RunDispatcher,
    { provide: ChildTasks, useClass: DelegatedTasks },
    { provide: IndexModels, useClass: TenantIndexModels },
  ],
  exports: [AgentDirectory, AgentList, SecretReader, TokenBudget, ChildTasks, IndexModels, RunDispatcher],
})
class RuntimePortsModule {}

/** The runs, for workers: claiming, executing, sweeping. It answers no caller. */
@Module({
  imports: [RuntimePortsModule, AgentsModule.withPorts(RuntimePortsModule)],
  providers: [
    ...[WorkerIdentity, RunStores, RunPorts, ActiveRuns, Quarantine, RunExecutor, RunConsumer],
    ...[Sweeper, RetentionSweep, UsageCount, PlatformGauges, PlatformReadiness, WorkerWatch],
    WorkerPresence,
    ...[TurnEnds, Suspensions, TaskCanceler, FamilySweep],
    ...[ScheduleClock, ScheduleSettler, ScheduleFiring],
  ],
  exports: [ActiveRuns, PlatformReadiness, RunExecutor],
})
export class RunsModule {}
