import { AgentsModule } from '@baton/agents';
import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/agent-directory.module.js';
import { SweepLeaderModule } from '../core/sweep-leader.module.js';
import { RuntimePortsModule } from '../runtime-ports/runtime-ports.module.js';
import { TurnsModule } from '../turns/turns.module.js';
import { AgentCharges } from '../charges/agent-charges.js';
import { ActiveRuns } from './active-runs.js';
import { CallRecords } from './call-records.js';
import { FairStarts } from './fair-starts.js';
import { RunExecutor } from './run-executor.js';
import { RunConsumer } from './run-consumer.js';
import { PinnedAgents } from './pinned-agents.js';
import { Quarantine } from './quarantine.js';
import { ReservedSlots } from './reserved-slots.js';
import { Sweeper } from './sweeper.js';
import { TaskConsoles } from './task-consoles.js';
import { TurnBuilder } from './turn-builder.js';
import { WorkerPresence } from './worker-presence.js';
import { WorkerIdentity } from './worker-identity.js';

/**
 * Claims, executes and sweeps runs. The consumer and the presence stop in one step of the shutdown: a worker that takes
 * no more runs must not count as alive.
 */
@Module({
  imports: [
    AgentDirectoryModule,
    SweepLeaderModule,
    OutboundModule,
    RuntimePortsModule,
    TurnsModule,
    AgentsModule.withPorts(RuntimePortsModule),
  ],
  providers: [
    ActiveRuns,
    AgentCharges,
    CallRecords,
    FairStarts,
    PinnedAgents,
    Quarantine,
    ReservedSlots,
    RunConsumer,
    RunExecutor,
    Sweeper,
    TaskConsoles,
    TurnBuilder,
    WorkerIdentity,
    WorkerPresence,
  ],
  exports: [ActiveRuns, WorkerIdentity, WorkerPresence],
})
export class RunsModule {}
