export * from './ports.js';
export {
  type Approver,
  type Decision,
  MAX_REASON,
  SENT_BY_AGENT,
  approvalsOf,
  asksForApproval,
  withApprover,
} from './approvals.js';
export { agentSchema } from './runtime-configs.js';
export { AgentsModule } from './agents.module.js';
export { BUILTIN_AGENTS } from './builtins.js';
export { type InstalledAgent, type LoadFailure, loadInstalledAgents } from './installed-agents.js';
export { AgentWatch } from './agent-watch.js';
export { filesInReach, missingSandbox } from './runtimes/executor/agent-sandbox.js';
export { ExecutorRuntime } from './runtimes/executor/executor-runtime.js';
export * from './agent-runtime.js';
export type { RuntimeName } from './runtimes.js';
export { namedCallees, parseWholeDocument, refusedCommands } from './definition-checks.js';
export { assertConfig, assertSchemas } from './runtime-configs.js';
export { AgentCrash, AgentError, type ConsoleLevel } from './runtimes/executor/protocol.js';
export { checkTools } from './tool-checks.js';
export { calledUrls } from './called-urls.js';
export { withoutHeaderTexts } from './header-texts.js';
export { type SecretUse, secretUses } from './secret-uses.js';
export { type GuardedTurn, SecretGuard } from './secret-guard.js';
