export * from './child-tasks.js';
export * from './child-refusal.js';
export * from './token-budget.js';
export * from './cap-reached.js';
export * from './tokens-exceeded.js';
export * from './index-models.js';
export * from './secret-reader.js';
export * from './access-tokens.js';
export { type OAuthServer, oauthServers } from './oauth-servers.js';
export * from './agent-list.js';
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
export {
  callPosition as askedIn,
  callDetail,
  type ModelCallDetail,
  type ToolCallDetail,
} from './runtimes/llm/call-detail.js';
export { type StepDetail, stepDetail } from './runtimes/executor/steps/step-detail.js';
export { type CallRecordDetail, callRecordDetail } from './runtimes/llm/recording/call-record-detail.js';
export { AgentsModule } from './agents.module.js';
export { BUILTIN_AGENTS } from './builtins.js';
export { packAgent } from './agent-archive.js';
export { TooLargeToKeep } from './too-large-to-keep.js';
export { KeptCode } from './kept-code.js';
export { type InstalledAgent, type LoadFailure, loadInstalledAgents } from './installed-agents.js';
export { AgentWatch } from './agent-watch.js';
export { FolderPoll } from './folder-poll.js';
export { filesInReach, missingSandboxReason } from './runtimes/executor/agent-sandbox.js';
export { type ReplayedTask, type ReplayResult, replayTasks } from './runtimes/executor/replay.js';
export { replayRequest } from './runtimes/executor/replay-request.js';
export type { TurnRequest } from './runtimes/executor/protocol.js';
export { AgentPools } from './runtimes/executor/agent-pools.js';
export { InstalledCode } from './installed-code.js';
export * from './agent-runtime.js';
export type { ConsoleLevel } from './console-level.js';
export { Suspension } from './suspension.js';
export { effectKey } from './effect-key.js';
export { JournalMismatch } from './journal-mismatch.js';
export { stepsToUndo } from './steps-to-undo.js';
export { undoEntry } from './undo-entry.js';
export { pointOfFailure, type PointOfFailure, reopenedStep } from './point-of-failure.js';
export {
  originJson,
  originOf,
  splitJournal,
  runOfEffects,
  taskOfEffects,
  type TaskOrigin,
  withOrigin,
} from './task-origin.js';
export * from './runtime-table.js';
export type { RuntimeName } from './runtimes.js';
export { namedCallees, parseWholeDocument, refusedCommands } from './definition-checks.js';
export { assertConfig, assertSchemas } from './runtime-configs.js';
export { AgentCrash } from './runtimes/executor/agent-crash.js';
export { AgentError } from './runtimes/executor/agent-error.js';
export { cancelRemoteCalls } from './remote-call-cancel.js';
export { checkTools } from './tool-checks.js';
export { calledUrls } from './called-urls.js';
export { withoutHeaderTexts } from './header-texts.js';
export { type SecretUse, secretUses } from './secret-uses.js';
export { type GuardedTurn, SecretGuard } from './secret-guard.js';
