import { shortened } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger, Metrics } from '@baton/telemetry';
import pLimit from 'p-limit';
import type { Turn, TurnSecrets } from '../../../../agent-runtime.js';
import { AgentFailure } from '../../agent-failure.js';
import type { LlmConfig } from '../../llm-config.js';
import { OutcomeUnknown } from '../outcome-unknown.js';
import type { AgentTool, OpenTools } from '../tool-sources.js';
import { connectionTo } from './connection-to.js';
import { fits, type McpServerConfig } from './mcp-config.js';
import { isTransient, isUnknown, serverFailure, whyUnusable } from './mcp-failure.js';
import type { ServerConnection } from './server-connection.js';
import type { ServerEras } from './server-eras.js';
import { type ListedTool, ToolList } from './tool-list.js';
import { ToolListExcess } from './tool-list-excess.js';
import { namesForModel, toolOutput } from './tool-output.js';

/** Dependencies of connections to MCP servers. */
export interface McpPorts {
  environment: Environment;
  logger: Logger;
  metrics: Metrics;
  eras: ServerEras;
}

/** Servers of an agent that open at the same time. Each may send a tool list of 1 MiB. */
const MAX_CONCURRENT_OPENS = 4;

interface OpenServer {
  config: McpServerConfig;
  connection: ServerConnection;
  secrets: TurnSecrets;
  tools: ListedTool[];
  /** Maximum size of a result's files, because they must fit into an event. */
  maxFileBytes: number;
  /** Called when a result has more items than the model sees. */
  onExcess: () => void;
}

/** Connects to all servers, some at a time. Rejects with an AgentFailure that names the unreachable server. */
export async function openServers(
  turn: Turn,
  config: LlmConfig,
  ports: McpPorts,
  signal: AbortSignal,
): Promise<OpenTools> {
  const limit = pLimit(MAX_CONCURRENT_OPENS);
  const results = await Promise.allSettled(
    config.tools.mcp.map((server) => limit(() => openServer(turn, server, ports, signal))),
  );
  const servers = results.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(servers.map(({ connection }) => connection.close()));
  };
  const failed = results.find((one) => one.status === 'rejected');
  const excess = excessOf(servers);
  if (failed ?? excess) {
    await close();
    throw failed?.reason ?? new AgentFailure(excess ?? '', { limit: 'toolList' });
  }
  return { tools: toolsOf(servers, config.model), close };
}

async function openServer(
  turn: Turn,
  config: McpServerConfig,
  ports: McpPorts,
  signal: AbortSignal,
): Promise<OpenServer | undefined> {
  const { environment, logger, metrics, eras } = ports;
  const { tenantId, task, runId, secrets, outbound } = turn;
  const log = logger.child({ tenantId, taskId: task.id, runId, mcpServer: config.name });
  let connection: ServerConnection | undefined;
  try {
    const known = 'url' in config ? eras.of(tenantId, config.url) : undefined;
    const onError = (error: Error): void =>
      log.debug('MCP connection', { reason: serverFailure(error, secrets.redactor) });
    connection = await connectionTo(config, { outbound, secrets, environment, log }, known, signal, onError);
    const list = new ToolList(config.allow, connection.era === 'modern');
    await connection.listTools(list, signal);
    if ('url' in config) eras.learn(tenantId, config.url, connection.era);
    const { tools, leftOut } = secrets.redactor.value({ tools: list.tools, leftOut: list.leftOut });
    if (list.hasExcess) metrics.limitExceeded.inc({ limit: 'toolList' });
    if (list.problem !== undefined) throw new Error(list.problem);
    if (leftOut.length > 0)
      log.warn('MCP tools left out', {
        count: list.leftOutCount,
        tools: leftOut.map(({ name, reason }) => `${name}: ${reason}`),
      });
    const maxFileBytes = Math.floor(environment.maxEventBytes / 2);
    const onExcess = (): void => metrics.limitExceeded.inc({ limit: 'toolResult' });
    return { config, connection, secrets, tools, maxFileBytes, onExcess };
  } catch (error) {
    await connection?.close();
    signal.throwIfAborted();
    // The next turn asks again what it speaks.
    if ('url' in config && !isTransient(error)) eras.forget(tenantId, config.url);
    if (error instanceof ToolListExcess) metrics.limitExceeded.inc({ limit: 'toolList' });
    const reason = `The MCP server "${config.name}" can't be used: ${whyUnusable(error, secrets.redactor)}`;
    log.warn('MCP server not usable', { reason });
    if (config.optional) return undefined;
    throw new AgentFailure(reason);
  }
}

/** Maximum tools of all servers of an agent, and their total size as JSON. */
const MAX_TOOLS = 2_000;
const MAX_LIST_BYTES = 4 * 1024 * 1024;

/** The problem if the tools of all servers exceed the limits; undefined if not. */
function excessOf(servers: readonly OpenServer[]): string | undefined {
  const tools = servers.flatMap((server) => server.tools);
  const remedy = "name those that the agent needs in allow of the servers' settings";
  if (tools.length > MAX_TOOLS) return `The MCP servers have more than ${MAX_TOOLS} tools: ${remedy}.`;
  const bytes = tools.reduce((sum, tool) => sum + Buffer.byteLength(JSON.stringify(tool)), 0);
  return bytes > MAX_LIST_BYTES
    ? `The tools of the MCP servers are larger than ${MAX_LIST_BYTES} bytes: ${remedy}.`
    : undefined;
}

function toolsOf(servers: readonly OpenServer[], model: string): AgentTool[] {
  const all = servers.flatMap((server) => server.tools.map((tool) => ({ server, tool })));
  const names = namesForModel(
    all.map(({ server, tool }) => ({ server: server.config.name, tool: tool.name })),
  );
  return all.map(({ server, tool }, i) => agentTool(names[i] ?? tool.name, server, asTakenBy(model, tool)));
}

/** OpenAI rejects longer descriptions, and object schemas without `properties`. */
const MAX_OPENAI_DESCRIPTION = 1024;

function asTakenBy(model: string, tool: ListedTool): ListedTool {
  const { description } = tool;
  const isLong = model.startsWith('openai') && description.length > MAX_OPENAI_DESCRIPTION;
  return {
    ...tool,
    description: isLong ? shortened(description, MAX_OPENAI_DESCRIPTION - 1) : description,
    inputSchema: { properties: {}, ...tool.inputSchema },
  };
}

function repeatOf(config: McpServerConfig, { name, isRepeatable }: ListedTool): AgentTool['repeat'] {
  if (fits(config.neverRepeat, name)) return 'never';
  return isRepeatable || fits(config.mayRepeat, name) ? 'again' : 'ask';
}

function agentTool(
  name: string,
  { config, connection, secrets, maxFileBytes, onExcess }: OpenServer,
  tool: ListedTool,
): AgentTool {
  const repeat = repeatOf(config, tool);
  return {
    name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    needsApproval: fits(config.approval, tool.name),
    server: config.name,
    repeat,
    execute: async (input, { key, signal }) => {
      try {
        const result = await connection.callTool(tool, input as Record<string, unknown>, {
          repeat,
          key,
          signal,
        });
        // Before it is cut: a part of a secret would not be recognized.
        const clean = secrets.redactor.value(result);
        return toolOutput(name, clean, { limit: config.resultLimit, maxFileBytes, onExcess });
      } catch (error) {
        signal.throwIfAborted();
        if (repeat === 'ask' && isUnknown(error))
          throw new OutcomeUnknown('what became of the call is not known');
        const failed = `The call of ${tool.name} at ${config.name} failed: ${serverFailure(error, secrets.redactor)}`;
        return { ok: false, content: failed };
      }
    },
  };
}
