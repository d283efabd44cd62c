export { AgentDirectory } from './agent-directory.js';
export { OperationTable } from './operations/operation-table.js';
export type { Operations } from './operations/operations.js';
export { Relay } from './relay/relay.js';
export { ActiveRuns } from './runs/active-runs.js';
export { RunsModule, TasksModule } from './tasks.module.js';
