export { AgentDirectory } from './agent-directory.js';
export { DeadLetters, refusalOf } from './dead-letters/dead-letters.js';
export { type RedeliveryPorts, redeliver } from './dead-letters/redelivery.js';
export { OperationTable } from './operations/operation-table.js';
export type { Operations } from './operations/operations.js';
export { RunsModule, TasksModule } from './tasks.module.js';
export { PlatformGauges } from './platform-gauges.js';
export { PlatformReadiness, type ReadinessReport } from './platform-readiness.js';
export { RequestListing } from './operations/request-listing.js';
