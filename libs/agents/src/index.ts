export { AgentList } from './agent-list.js';
export { type Decision, MAX_REASON, SENT_BY_AGENT, approvalsOf, asksForApproval } from './approvals.js';
export {
  type ChildAnswer,
  ChildRefusal,
  type ChildRequest,
  type ChildTask,
  ChildTasks,
} from './child-tasks.js';
export { agentSchema } from './agent-schema.js';
export { AgentsModule } from './agents.module.js';
export { BUILTIN_AGENTS } from './builtins.js';
export { type IndexModel, IndexModels } from './index-models.js';
export { type InstalledAgent, loadInstalledAgents } from './installed-agents.js';
export * from './runtime.js';
export { assertConfig, assertSchemas } from './runtime-configs.js';
export { AgentCrash, AgentError } from './runtimes/executor/run-failure.js';
export { SecretReader } from './secret-reader.js';
export { TokenBudget, type TokenCount, TokensExceeded } from './token-budget.js';
export type { JournalEntry, TurnJournal } from './turn-journal.js';
export { RuntimeTable } from './runtimes.js';
