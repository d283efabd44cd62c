import { Environment } from '@baton/config';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Turn } from '../../../../agent-runtime.js';
import type { LlmConfig } from '../../llm-config.js';
import type { OpenTools, ToolSource, WaitingCall } from '../tool-sources.js';
import type { RemoteCall } from '../remote-call.js';
import type { ContextProgram } from './context-program.js';
import { KeptPrograms } from './kept-programs.js';
import { ServerEras } from './server-eras.js';

/** The tools of the MCP servers that an agent's definition names. */
@Injectable()
export class McpTools implements ToolSource, OnApplicationShutdown {
  private readonly eras = new ServerEras();
  private readonly programs: KeptPrograms<ContextProgram>;

  constructor(
    readonly environment: Environment,
    readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {
    const { mcpKeptPrograms: max, mcpKeptProgramsPerTenant: maxPerTenant } = environment;
    this.programs = new KeptPrograms({ max, maxPerTenant }, logger, metrics);
  }

  /** All runs have ended or returned to the queue before this call. */
  onApplicationShutdown(): Promise<void> {
    return this.programs.close();
  }

  /** Rejects with an AgentFailure that names the unreachable server. */
  async open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools> {
    if (config.tools.mcp.length === 0) return { tools: [], close: () => Promise.resolve() };
    // The MCP SDK is large. A process loads it when an agent needs it.
    const { openServers } = await import('./mcp-servers.js');
    const { environment, logger, metrics, eras, programs } = this;
    return openServers(turn, config, { environment, logger, metrics, eras, programs }, signal);
  }

  async pollTask(
    turn: Turn,
    config: LlmConfig,
    kept: RemoteCall,
    keep: (call: RemoteCall) => Promise<void>,
    signal: AbortSignal,
  ): Promise<WaitingCall | undefined> {
    const { pollCall } = await import('./mcp-servers.js');
    return pollCall(turn, config, kept, keep, this, signal);
  }
}
