import type { AgentDefinition, FieldViolation } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { OutboundCalls } from '@baton/outbound';
import type { Logger } from '@baton/telemetry';
import pLimit from 'p-limit';
import { llmConfigSchema } from './runtimes/llm/llm-config.js';
import { fitsOne, type McpServerConfig } from './runtimes/llm/tools/mcp/mcp-config.js';
import type * as Connections from './runtimes/llm/tools/mcp/connection-to.js';
import type * as Explanations from './runtimes/llm/tools/mcp/explain-failure.js';
import type { ServerConnection } from './runtimes/llm/tools/mcp/server-connection.js';
import { type LeftOutTool, ToolList } from './runtimes/llm/tools/mcp/tool-list.js';
import type { TurnSecrets } from './agent-runtime.js';

/** Servers that are asked at the same time. Each may send a list of 1 MiB. */
const MAX_CONCURRENT = 4;
/** Patterns of one agent that are reported. */
const MAX_FAULTS = 100;
/** Tools of a server that a fault names. */
const MAX_NAMED = 10;
/** Characters of a tool's name in a fault: providers take no longer ones. */
const MAX_NAME = 64;
const PATTERN_FIELDS = ['allow', 'approval', 'neverRepeat', 'mayRepeat'] as const;

/** The secrets and connections of a check: those of a turn of the tenant. */
export interface ToolCheckPorts {
  outbound: OutboundCalls;
  secrets: TurnSecrets;
  environment: Environment;
  logger: Logger;
}

/** Findings of a check. Each names a field. */
interface ToolCheck {
  /** Servers that cannot be used, and names and patterns that match no usable tool of their server. */
  faults: FieldViolation[];
  /** Servers that were not asked, and tools that the agent does not get. */
  unchecked: FieldViolation[];
}

/**
 * Asks the MCP servers of a definition for their tools, as a turn would. Servers that are programs are not asked, because only
 * workers start programs.
 * @param timeoutMs maximum time for all servers together
 */
export async function checkTools(
  { runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>,
  ports: ToolCheckPorts,
  timeoutMs: number,
): Promise<ToolCheck> {
  const servers = runtime === 'llm' ? llmConfigSchema.parse(config).tools.mcp : [];
  if (servers.length === 0) return { faults: [], unchecked: [] };
  // The MCP SDK is large. A process loads it at its first use.
  const sdk = {
    ...(await import('./runtimes/llm/tools/mcp/connection-to.js')),
    ...(await import('./runtimes/llm/tools/mcp/explain-failure.js')),
  };
  const signal = AbortSignal.timeout(timeoutMs);
  const limit = pLimit(MAX_CONCURRENT);
  const checks = await Promise.all(
    servers.map(async (server, i) => {
      const field = `config.tools.mcp[${i}]`;
      if (!('command' in server)) return limit(() => checkServer(server, field, sdk, ports, signal));
      const description = 'its tools are not checked: only workers start programs';
      return { faults: [], unchecked: [{ field: `${field}.command`, description }] };
    }),
  );
  return {
    faults: checks.flatMap(({ faults }) => faults).slice(0, MAX_FAULTS),
    unchecked: checks.flatMap(({ unchecked }) => unchecked),
  };
}

type McpSdk = Pick<typeof Connections, 'connectionTo'> & Pick<typeof Explanations, 'whyUnusable'>;

async function checkServer(
  server: McpServerConfig,
  field: string,
  { connectionTo, whyUnusable }: McpSdk,
  { outbound, secrets, environment, logger: log }: ToolCheckPorts,
  signal: AbortSignal,
): Promise<ToolCheck> {
  let connection: ServerConnection | undefined;
  try {
    connection = await connectionTo(server, { outbound, secrets, environment, log }, undefined, signal);
    const list = new ToolList(server.allow, connection.era === 'modern');
    await connection.listTools(list, signal);
    const { redactor } = secrets;
    const leftOut = redactor.value(list.leftOut);
    const tools = [...list.names].map((name) => redactor.text(name));
    const usable = list.tools.map(({ name }) => redactor.text(name));
    const faults = unmatched(server, { tools, usable, leftOut }, field);
    if (faults.length === 0 && list.problem !== undefined) throw new Error(list.problem);
    return {
      faults,
      unchecked: leftOutTools(server, leftOut, list.leftOutCount, field),
    };
  } catch (error) {
    const reason = signal.aborted ? 'it gives no answer in time' : whyUnusable(error, secrets.redactor);
    const description = `the MCP server "${server.name}" cannot be used: ${reason}`;
    return { faults: [{ field: `${field}.url`, description }], unchecked: [] };
  } finally {
    await connection?.close();
  }
}

/** The names and patterns that match no tool, and those of `allow` that match only tools that cannot be used. */
function unmatched(
  server: McpServerConfig,
  {
    tools,
    usable,
    leftOut,
  }: Record<'tools' | 'usable', readonly string[]> & { leftOut: readonly LeftOutTool[] },
  field: string,
): FieldViolation[] {
  return PATTERN_FIELDS.flatMap((name) => {
    const patterns = server[name];
    if (patterns === undefined || patterns === 'all') return [];
    return patterns.flatMap((pattern, i) => {
      const given = name === 'allow' ? usable : tools;
      if (given.some((tool) => fitsOne(pattern, tool))) return [];
      const odd = leftOut.find((tool) => fitsOne(pattern, tool.name));
      const description = odd
        ? `${nameOf(odd.name)} of the MCP server "${server.name}" cannot be used: it ${odd.reason}`
        : `"${pattern}" fits no tool of the MCP server "${server.name}". ${offered(tools)}`;
      return [{ field: `${field}.${name}[${i}]`, description }];
    });
  });
}

/** The tools that the agent does not get, as far as they are named, and how many more there are. */
function leftOutTools(
  server: McpServerConfig,
  leftOut: readonly LeftOutTool[],
  count: number,
  field: string,
): FieldViolation[] {
  const descriptions = leftOut
    .slice(0, MAX_NAMED)
    .map(({ name, reason }) => `${nameOf(name)} is left out: it ${reason}`);
  const more = count - descriptions.length;
  if (more > 0) descriptions.push(`${more} more tools of the MCP server "${server.name}" are left out`);
  return descriptions.map((description) => ({ field, description }));
}

const nameOf = (tool: string): string => `the tool "${tool.slice(0, MAX_NAME)}"`;

function offered(tools: readonly string[]): string {
  if (tools.length === 0) return 'It has no tools';
  const named = tools.slice(0, MAX_NAMED).map((name) => name.slice(0, MAX_NAME));
  const more = tools.length - named.length;
  return `It has ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
