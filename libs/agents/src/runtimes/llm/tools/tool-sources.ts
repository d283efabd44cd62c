import type { Type } from '@nestjs/common';
import type { Turn } from '../../../runtime.js';
import { AgentFailure } from '../agent-failure.js';
import type { LlmConfig } from '../config.js';
import type { OpenTools, ToolSource } from './agent-tool.js';
import { CalleeTools } from './callees/callee-tools.js';
import { McpTools } from './mcp/mcp-tools.js';

/** Where tools come from, one row each. */
export const TOOL_SOURCES: readonly Type<ToolSource>[] = [McpTools, CalleeTools];

/** Every source of tools. */
export class ToolSources {
  constructor(private readonly sources: readonly ToolSource[]) {}

  /** The tools of an agent for one turn. Rejects with AgentFailure where one can't be had; then none is left open. */
  async open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools> {
    const opened = await Promise.allSettled(this.sources.map((source) => source.open(turn, config, signal)));
    const open = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const close = async (): Promise<void> => {
      await Promise.allSettled(open.map((one) => one.close()));
    };
    const failure = opened.find((one) => one.status === 'rejected');
    const tools = open.flatMap((one) => one.tools);
    const names = new Set<string>();
    const twice = tools.find(({ name }) => names.size === names.add(name).size);
    if (!failure && !twice) return { tools, close };
    await close();
    throw failure?.reason ?? new AgentFailure(`The agent has two tools named "${twice?.name}".`);
  }
}
