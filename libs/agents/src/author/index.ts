// The package `@baton/agent`, for authors of agents in code. It imports nothing of Baton by its aliases, because an
// agent's folder does not have them.
export { type AgentAnswer, type AgentTurn, defineAgent } from './define-agent.js';
export { defineTool } from './define-tool.js';
export { stepsOf } from './steps-of.js';
export { textOf } from './text-of.js';
export {
  type ExecutorRun,
  type RunOptions,
  runExecutor,
  type StepJournal,
  type UndoneSteps,
} from './run-executor.js';
export type { ModelScript, ScriptedAnswer, ScriptedCall } from './scripted-models.js';
export type * from '../runtimes/executor/child/function-tool.js';
export type * from '../runtimes/executor/child/steps.js';
