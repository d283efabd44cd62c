import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/agent-directory.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { Relay } from '../relay/relay.js';
import { TurnsModule } from '../turns/turns.module.js';
import { ArtifactPages } from './artifact-pages.js';
import { CallerExchanges } from './caller-exchanges.js';
import { CancelOperation } from './cancel-operation.js';
import { TaskFinder } from './task-finder.js';
import { ListTotals } from './list-totals.js';
import { MessageRouter } from './message-router.js';
import { OperationTable } from './operation-table.js';
import { EffectLedger } from './effect-ledger.js';
import { ParkedTasks } from './parked-tasks.js';
import { ReceiversModule } from '../push/receivers.module.js';
import { PushOperations } from './push-operations.js';
import { ReadOperations } from './read-operations.js';
import { TaskListing } from './task-listing.js';
import { TaskReplays } from './task-replays.js';
import { TaskTraces } from '../trace/task-traces.js';
import { SendOperations } from './send-operations.js';
import { SubscribeOperation } from './subscribe-operation.js';

/** The operations of A2A, and the lists of the REST API. */
@Module({
  imports: [AgentDirectoryModule, OutboundModule, PlatformModule, ReceiversModule, TurnsModule],
  providers: [
    ArtifactPages,
    CallerExchanges,
    CancelOperation,
    ListTotals,
    MessageRouter,
    OperationTable,
    EffectLedger,
    ParkedTasks,
    PushOperations,
    ReadOperations,
    Relay,
    TaskListing,
    TaskReplays,
    TaskTraces,
    SendOperations,
    SubscribeOperation,
    TaskFinder,
  ],
  exports: [ArtifactPages, EffectLedger, OperationTable, ParkedTasks, TaskListing, TaskReplays, TaskTraces],
})
export class OperationsModule {}
