import type { AgentDefinition, FieldViolation } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { OutboundCalls } from '@baton/outbound';
import type { Logger } from '@baton/telemetry';
import pLimit from 'p-limit';
import { llmConfigSchema } from './runtimes/llm/llm-config.js';
import { fitsOne, type McpServerConfig } from './runtimes/llm/tools/mcp/mcp-config.js';
import type * as Links from './runtimes/llm/tools/mcp/links.js';
import type * as Connection from './runtimes/llm/tools/mcp/mcp-connection.js';
import type { TurnSecrets } from './agent-runtime.js';

/** Servers that are asked at the same time. Each may send a list of 1 MiB. */
const MAX_CONCURRENT = 4;
/** Patterns of one agent that are reported. */
const MAX_FAULTS = 100;
/** Tools of a server that a fault names. */
const MAX_NAMED = 10;
const MAX_NAME = 64;
const PATTERN_FIELDS = ['allow', 'approval', 'neverRepeat'] as const;

/** What a check may use, as a turn of the tenant would. */
export interface ToolCheckPorts {
  outbound: OutboundCalls;
  secrets: TurnSecrets;
  environment: Environment;
  logger: Logger;
}

/**
 * Asks the MCP servers of a definition for their tools, as a turn would.
 * @param timeoutMs maximum time for all servers together
 * @returns `faults`: servers that can not be used, and names and patterns that no tool of their server has; `unchecked`: servers
 * that are programs, because only workers start programs. Both name the field.
 */
export async function checkTools(
  { runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>,
  ports: ToolCheckPorts,
  timeoutMs: number,
): Promise<{ faults: FieldViolation[]; unchecked: FieldViolation[] }> {
  const servers = runtime === 'llm' ? llmConfigSchema.parse(config).tools.mcp : [];
  if (servers.length === 0) return { faults: [], unchecked: [] };
  // The MCP SDK is large. A process loads it when somebody needs it.
  const sdk = {
    ...(await import('./runtimes/llm/tools/mcp/links.js')),
    ...(await import('./runtimes/llm/tools/mcp/mcp-connection.js')),
  };
  const signal = AbortSignal.timeout(timeoutMs);
  const limit = pLimit(MAX_CONCURRENT);
  const unchecked: FieldViolation[] = [];
  const faults = await Promise.all(
    servers.map(async (server, i) => {
      const field = `config.tools.mcp[${i}]`;
      if (!('command' in server)) return limit(() => faultsOf(server, field, sdk, ports, signal));
      const description = 'its tools are not checked: only workers start programs';
      unchecked.push({ field: `${field}.command`, description });
      return [];
    }),
  );
  return { faults: faults.flat().slice(0, MAX_FAULTS), unchecked };
}

type McpSdk = Pick<typeof Links, 'linksTo'> & Pick<typeof Connection, 'McpConnection' | 'serverFailure'>;

async function faultsOf(
  server: McpServerConfig,
  field: string,
  { linksTo, McpConnection, serverFailure }: McpSdk,
  { outbound, secrets, environment, logger: log }: ToolCheckPorts,
  signal: AbortSignal,
): Promise<FieldViolation[]> {
  let connection: Connection.McpConnection | undefined;
  try {
    const links = await linksTo(server, { outbound, secrets, environment, log });
    const { connectTimeout, timeout } = server;
    connection = new McpConnection({ links, connectTimeout, timeout, onError: () => undefined });
    const tools = secrets.redactor.value(await connection.listTools(signal));
    const names = tools.map(({ name }) => name);
    return unmatched(server, names, field);
  } catch (error) {
    const reason = signal.aborted ? 'it gives no answer in time' : serverFailure(error, secrets.redactor);
    return [
      { field: `${field}.url`, description: `the MCP server "${server.name}" can't be used: ${reason}` },
    ];
  } finally {
    await connection?.close();
  }
}

/** The names and patterns that fit none of the tools. */
function unmatched(server: McpServerConfig, tools: readonly string[], field: string): FieldViolation[] {
  return PATTERN_FIELDS.flatMap((name) => {
    const patterns = server[name];
    if (patterns === undefined || patterns === 'all') return [];
    return patterns.flatMap((pattern, i) =>
      tools.some((tool) => fitsOne(pattern, tool))
        ? []
        : [
            {
              field: `${field}.${name}[${i}]`,
              description: `"${pattern}" fits no tool of the MCP server "${server.name}". ${offered(tools)}`,
            },
          ],
    );
  });
}

function offered(tools: readonly string[]): string {
  if (tools.length === 0) return 'It has no tools';
  const named = tools.slice(0, MAX_NAMED).map((name) => name.slice(0, MAX_NAME));
  const more = tools.length - named.length;
  return `It has ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
