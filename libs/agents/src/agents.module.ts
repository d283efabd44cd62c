import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { type AgentRuntime, RuntimeTable } from './runtime-table.js';
import { RemoteConnector } from './runtimes/remote-a2a/remote-connector.js';
import { RUNTIMES } from './runtimes.js';
import { IndexRouter } from './runtimes/index-agent/index-router.js';
import { ModelCalls } from './runtimes/llm/model-calls.js';
import { type ToolSource, ToolSources } from './runtimes/llm/tools/tool-sources.js';
import { CalleeTools } from './runtimes/llm/tools/callee-tools.js';
import { McpTools } from './runtimes/llm/tools/mcp/mcp-tools.js';
import { InstalledCode } from './installed-code.js';
import { AgentPools } from './runtimes/executor/agent-pools.js';
import { StepPorts } from './runtimes/executor/step-ports.js';
import { FunctionTools } from './runtimes/executor/function-tools.js';

/** The sources of tools of llm agents, one row each. */
const TOOL_SOURCES: readonly Type<ToolSource>[] = [McpTools, CalleeTools, FunctionTools];

/** Provides the RuntimeTable with all runtimes. */
@Module({})
export class AgentsModule {
  /**
   * @param ports a module that provides the ports of the runtimes: `AccessTokens`, `AgentList`, `SecretReader`, `TokenBudget`,
   * `ChildTasks`, `IndexModels`
   */
  static withPorts(ports: Type): DynamicModule {
    const classes = Object.values<Type<AgentRuntime>>(RUNTIMES);
    return {
      module: AgentsModule,
      imports: [ports],
      providers: [
        ...classes,
        ...TOOL_SOURCES,
        AgentPools,
        IndexRouter,
        InstalledCode,
        ModelCalls,
        {
          provide: ToolSources,
          useFactory: (...sources: ToolSource[]) => new ToolSources(sources),
          inject: [...TOOL_SOURCES],
        },
        RemoteConnector,
        StepPorts,
        {
          provide: RuntimeTable,
          useFactory: (...runtimes: AgentRuntime[]) => new RuntimeTable(runtimes),
          inject: classes,
        },
      ],
      exports: [RuntimeTable],
    };
  }
}
