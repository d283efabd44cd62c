import { AgentList, AgentsModule } from '@baton/agents';
import { Module } from '@nestjs/common';
import { AgentDirectory } from './agent-directory.js';
import { DeadLetters } from './dead-letters/dead-letters.js';
import { Dispatcher } from './dispatch/dispatcher.js';
import { WorkerPresence } from './dispatch/worker-presence.js';
import { TurnIntake } from './operations/accept-turn.js';
import { Conversation } from './operations/conversation.js';
import { TaskFinder } from './operations/find-task.js';
import { ListTotals } from './operations/list-totals.js';
import { MessagePlacement } from './operations/place-message.js';
import { RequestListing } from './operations/request-listing.js';
import { CancelOperation } from './operations/cancel-task.js';
import { OperationTable } from './operations/operation-table.js';
import { ReadOperations } from './operations/read-tasks.js';
import { SendOperations } from './operations/send-message.js';
import { SubscribeOperation } from './operations/subscribe-to-task.js';
import { PlatformGauges } from './platform-gauges.js';
import { Relay } from './relay/relay.js';
import { ActiveRuns } from './runs/active-runs.js';
import { RunConsumer } from './runs/run-consumer.js';
import { RunExecutor, RunPorts } from './runs/run-executor.js';
import { Sweeper } from './runs/sweeper.js';
import { RetentionSweep } from './retention/retention-sweep.js';
import { WorkerIdentity } from './runs/worker-identity.js';
import { UsageCount } from './usage/usage-count.js';

/** The use cases, for the API: everything a caller can ask. It executes nothing. */
@Module({
  providers: [
    AgentDirectory,
    Relay,
    TaskFinder,
    Conversation,
    Dispatcher,
    TurnIntake,
    MessagePlacement,
    RequestListing,
    SendOperations,
    ReadOperations,
    ListTotals,
    CancelOperation,
    SubscribeOperation,
    OperationTable,
    DeadLetters,
    PlatformGauges,
  ],
  exports: [AgentDirectory, DeadLetters, RequestListing, OperationTable, Relay],
})
export class TasksModule {}

/** Finds agents, and gives the runtimes their view of the catalog. */
@Module({
  providers: [AgentDirectory, { provide: AgentList, useExisting: AgentDirectory }],
  exports: [AgentDirectory, AgentList],
})
class DirectoryModule {}

/** The runs, for workers: claiming, executing, sweeping. It answers no caller. */
@Module({
  imports: [DirectoryModule, AgentsModule.withCatalog(DirectoryModule)],
  providers: [
    ...[WorkerIdentity, RunPorts, ActiveRuns, RunExecutor, RunConsumer],
    ...[Sweeper, RetentionSweep, UsageCount, PlatformGauges],
    ...[Dispatcher, WorkerPresence],
  ],
  exports: [ActiveRuns, RunExecutor],
})
export class RunsModule {}
