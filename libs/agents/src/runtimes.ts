import type { Type } from '@nestjs/common';
import type { AgentRuntime } from './runtime-table.js';
import { EchoRuntime } from './runtimes/echo/echo-runtime.js';
import { ExecutorRuntime } from './runtimes/executor/executor-runtime.js';
import { IndexRuntime } from './runtimes/index-agent/index-runtime.js';
import { LlmRuntime } from './runtimes/llm/llm-runtime.js';
import { RemoteA2aRuntime } from './runtimes/remote-a2a/remote-a2a-runtime.js';

/** All runtimes, one row each. To add one: its folder in `runtimes/`, a row here and one in RUNTIME_CONFIGS. */
export const RUNTIMES = {
  echo: EchoRuntime,
  executor: ExecutorRuntime,
  index: IndexRuntime,
  llm: LlmRuntime,
  'remote-a2a': RemoteA2aRuntime,
} satisfies Record<string, Type<AgentRuntime>>;

/** The name of a runtime, as `runtime` of a definition has it. */
export type RuntimeName = keyof typeof RUNTIMES;
