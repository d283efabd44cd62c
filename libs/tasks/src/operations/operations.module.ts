import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/catalog.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { Relay } from '../relay/relay.js';
import { TurnsModule } from '../turns/turns.module.js';
import { ArtifactPages } from './artifact-pages.js';
import { CallerExchanges } from './caller-exchanges.js';
import { CancelOperation } from './cancel-operation.js';
import { ListTotals } from './list-totals.js';
import { MessageRouter } from './message-router.js';
import { VersionsInUse } from './versions-in-use.js';
import { OperationTable } from './operation-table.js';
import { EffectLedger } from './effect-ledger.js';
import { ParkedTasks } from './parked-tasks.js';
import { ReceiversModule } from '../push/receivers.module.js';
import { PushOperations } from './push-operations.js';
import { ReadOperations } from './read-operations.js';
import { TaskDetails } from './task-details.js';
import { TaskFinder } from './task-finder.js';
import { TaskListing } from './task-listing.js';
import { TaskLogPages } from './task-log-pages.js';
import { TaskReplays } from './task-replays.js';
import { CallDetails } from '../trace/call-details.js';
import { TaskTraces } from '../trace/task-traces.js';
import { SendOperations } from './send-operations.js';
import { SubscribeOperation } from './subscribe-operation.js';
import { UsageReports } from './usage-reports.js';

/** The operations of A2A, and the lists of the REST API. */
@Module({
  imports: [CatalogModule, OutboundModule, PlatformModule, ReceiversModule, TurnsModule],
  providers: [
    ArtifactPages,
    CallDetails,
    CallerExchanges,
    CancelOperation,
    ListTotals,
    MessageRouter,
    VersionsInUse,
    OperationTable,
    EffectLedger,
    ParkedTasks,
    PushOperations,
    ReadOperations,
    Relay,
    TaskDetails,
    TaskListing,
    TaskLogPages,
    TaskReplays,
    TaskTraces,
    SendOperations,
    SubscribeOperation,
    TaskFinder,
    UsageReports,
  ],
  exports: [
    ArtifactPages,
    CallDetails,
    EffectLedger,
    VersionsInUse,
    OperationTable,
    ParkedTasks,
    TaskDetails,
    TaskListing,
    TaskLogPages,
    TaskReplays,
    TaskTraces,
    UsageReports,
  ],
})
export class OperationsModule {}
