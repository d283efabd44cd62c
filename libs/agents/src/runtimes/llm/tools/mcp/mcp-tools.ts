import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import { Injectable } from '@nestjs/common';
import { Outbound } from '../../../../outbound/outbound.js';
import type { Turn } from '../../../../runtime.js';
import { SecretReader } from '../../../../secret-reader.js';
import { AgentFailure } from '../../agent-failure.js';
import type { LlmConfig } from '../../config.js';
import type { AgentTool, OpenTools, ToolSource } from '../agent-tool.js';
import { serverFailure } from './server-failure.js';
import type { McpServerConfig } from './mcp-config.js';
import { McpConnection } from './mcp-connection.js';
import { linksTo } from './links.js';
import { fits } from './name-patterns.js';
import { namesForModel } from './tool-names.js';
import { toolOutput } from './tool-output.js';

interface OpenServer {
  config: McpServerConfig;
  connection: McpConnection;
  tools: Tool[];
  /** An event must hold the files of a result. */
  maxFileBytes: number;
}

/** The tools of the MCP servers that an agent's definition names. */
@Injectable()
export class McpTools implements ToolSource {
  constructor(
    private readonly outbound: Outbound,
    private readonly secrets: SecretReader,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /** Connects to all servers at once. Rejects with an AgentFailure that names the server that can't be reached. */
  async open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools> {
    const opening = config.tools.mcp.map((server) => this.openServer(turn, server, signal));
    const settled = await Promise.allSettled(opening);
    const servers = settled.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
    const close = async (): Promise<void> => {
      await Promise.all(servers.map(({ connection }) => connection.close()));
    };
    const failed = settled.find((one) => one.status === 'rejected');
    if (failed) {
      await close();
      throw failed.reason;
    }
    return { tools: toolsOf(servers, config.model), close };
  }

  private async openServer(
    turn: Turn,
    config: McpServerConfig,
    signal: AbortSignal,
  ): Promise<OpenServer | undefined> {
    const { tenantId, task, runId } = turn;
    const log = this.logger.child({ tenantId, taskId: task.id, runId, mcpServer: config.name });
    const { outbound, secrets, environment } = this;
    let connection: McpConnection | undefined;
    try {
      const links = await linksTo(config, tenantId, { outbound, secrets, environment, log });
      const onError = (error: Error): void => log.debug('MCP connection', { err: error });
      const { connectTimeout, timeout } = config;
      connection = new McpConnection({ links, connectTimeout, timeout, onError });
      const tools = (await connection.listTools(signal)).filter((tool) => isUsable(tool, config));
      const maxFileBytes = Math.floor(environment.maxEventBytes / 2);
      return { config, connection, tools, maxFileBytes };
    } catch (error) {
      await connection?.close();
      signal.throwIfAborted();
      const reason = `The MCP server "${config.name}" can't be used: ${serverFailure(error)}`;
      log.warn('MCP server not usable', { err: error });
      if (config.optional) return undefined;
      throw new AgentFailure(reason, { cause: error });
    }
  }
}

/** A tool that works only as a task of MCP is no tool for a model. */
const isUsable = ({ name, execution }: Tool, { allow }: McpServerConfig): boolean =>
  (allow === undefined || fits(allow, name)) && execution?.taskSupport !== 'required';

function toolsOf(servers: readonly OpenServer[], model: string): AgentTool[] {
  const all = servers.flatMap((server) => server.tools.map((tool) => ({ server, tool })));
  const names = namesForModel(
    all.map(({ server, tool }) => ({ server: server.config.name, tool: tool.name })),
  );
  return all.map(({ server, tool }, i) => agentTool(names[i] ?? tool.name, server, asTakenBy(model, tool)));
}

/** OpenAI refuses longer descriptions, and objects that do not say which fields they have. */
const MAX_OPENAI_DESCRIPTION = 1024;

function asTakenBy(model: string, tool: Tool): Tool {
  const { description = tool.title ?? '' } = tool;
  const isLong = model.startsWith('openai') && description.length > MAX_OPENAI_DESCRIPTION;
  return {
    ...tool,
    description: isLong ? `${description.slice(0, MAX_OPENAI_DESCRIPTION - 1)}…` : description,
    inputSchema: { properties: {}, ...tool.inputSchema },
  };
}

function agentTool(name: string, { config, connection, maxFileBytes }: OpenServer, tool: Tool): AgentTool {
  const repeat = fits(config.neverRepeat, tool.name) ? 'never' : 'again';
  return {
    name,
    description: tool.description ?? '',
    inputSchema: tool.inputSchema,
    needsApproval: fits(config.approval, tool.name),
    server: config.name,
    repeat,
    execute: async (input, { signal }) => {
      try {
        const result = await connection.callTool(tool.name, input as Record<string, unknown>, {
          repeat,
          signal,
        });
        return toolOutput(name, result, config.resultLimit, maxFileBytes);
      } catch (error) {
        signal.throwIfAborted();
        return {
          ok: false,
          content: `The call of ${tool.name} at ${config.name} failed: ${serverFailure(error)}`,
        };
      }
    },
  };
}
