import {
  type AgentDefinition,
  type AgentDocument,
  type FieldViolation,
  parseAgentDocument,
  ProtocolError,
} from '@baton/a2a';
import { assertConfig } from './runtime-configs.js';
import { llmConfigSchema } from './runtimes/llm/llm-config.js';
import { type StdioAllowance, whyNotAllowed } from './runtimes/llm/tools/mcp/mcp-config.js';

/**
 * Like `parseAgentDocument`. If the document has faults, the error also names those of its runtime's settings, so that its
 * author reads all of them at once.
 */
export function parseWholeDocument(raw: unknown): AgentDocument {
  try {
    return parseAgentDocument(raw);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const more = faultsOfConfig(raw);
    if (!more) throw error;
    const violations = [...(error.detail.violations ?? []), ...(more.detail.violations ?? [])];
    throw new ProtocolError('invalid-params', `${error.message}; ${more.message}`, { violations });
  }
}

/** The faults in the settings of the runtime, if the document names a runtime. */
function faultsOfConfig(raw: unknown): ProtocolError | undefined {
  const { runtime, config = {} } = (raw ?? {}) as { runtime?: unknown; config?: unknown };
  if (typeof runtime !== 'string' || typeof config !== 'object' || config === null) return undefined;
  try {
    assertConfig({ runtime, config: config as Record<string, unknown> });
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return error;
    throw error;
  }
}

type RuntimeDefinition = Pick<AgentDefinition, 'runtime' | 'config'>;

/** The agents that an agent names to delegate to, and where it does so. */
export function namedCallees({ runtime, config }: RuntimeDefinition): { field: string; agent: string }[] {
  if (runtime !== 'llm') return [];
  const { agents } = llmConfigSchema.parse(config);
  if (agents === 'all') return [];
  return agents.map(({ agent }, i) => ({ field: `config.agents[${i}]`, agent }));
}

/** The commands of MCP servers that a process with these allowances does not start. */
export function refusedCommands(
  { runtime, config }: RuntimeDefinition,
  allowances: readonly StdioAllowance[],
): FieldViolation[] {
  if (runtime !== 'llm') return [];
  return llmConfigSchema.parse(config).tools.mcp.flatMap((server, i) => {
    const reason = 'command' in server ? whyNotAllowed(server, allowances) : undefined;
    return reason === undefined ? [] : [{ field: `config.tools.mcp[${i}].command`, description: reason }];
  });
}
