import { loadEnvironment } from '@baton/config';
import { Logger, Metrics } from '@baton/telemetry';
import {
  type McpServerOptions,
  type TestMcpServer,
  startMcpServer,
} from '../../../../../../../test/support/mcp-server/mcp-server.js';
import { Outbound } from '@baton/outbound';
import { firstTurn, turnSecrets } from '../../../../../../../test/support/agents/turns.js';
import { llmConfig } from '../../llm-config.js';
import type { GuardedTurn } from '../../../../secret-guard.js';
import type { OpenTools, ToolResult } from '../tool-sources.js';
import { McpTools } from './mcp-tools.js';

export const never = new AbortController().signal;

interface OpenOptions {
  model?: string;
  secrets?: ReturnType<typeof turnSecrets>;
  /** Of the turn. */
  turn?: Partial<GuardedTurn>;
}

/** The tools of an agent beside MCP servers of a test. */
export class McpBench {
  /** The secrets of the tenant. */
  readonly secrets = new Map([['tracker', 's3cret']]);
  /** MCP_STDIO_ALLOW of the worker. */
  stdioAllow = '';
  /** MCP_KEPT_PROGRAMS_PER_TENANT of the worker. */
  keptPrograms = 4;
  readonly metrics = new Metrics();
  readonly outbound = new Outbound({ outboundAllow: ['127.0.0.1'] }, this.metrics);
  private readonly cleanup: (() => Promise<void>)[] = [];

  /** A server that is stopped after the test. */
  async serve(options: McpServerOptions): Promise<TestMcpServer> {
    const server = await startMcpServer(options);
    this.cleanup.push(() => server.stop());
    return server;
  }

  /** What to end after the test. */
  atReset(end: () => Promise<void>): void {
    this.cleanup.push(end);
  }

  /** The tools of a worker. It remembers what it has learned of servers. */
  source(): McpTools {
    const DATABASE_URL = 'postgres://baton@db/baton';
    const environment = loadEnvironment({
      DATABASE_URL,
      MCP_STDIO_ALLOW: this.stdioAllow,
      MCP_KEPT_PROGRAMS_PER_TENANT: String(this.keptPrograms),
    });
    const source = new McpTools(environment, Logger.silent(), this.metrics);
    this.cleanup.push(() => source.onApplicationShutdown());
    return source;
  }

  /** Begin a turn of an agent that has these servers. */
  open(servers: object[], options?: OpenOptions): Promise<OpenTools> {
    return this.openWith(this.source(), servers, options);
  }

  async openWith(
    source: McpTools,
    servers: object[],
    {
      model = 'openai/m',
      secrets = turnSecrets(Object.fromEntries(this.secrets)),
      turn = {},
    }: OpenOptions = {},
  ): Promise<OpenTools> {
    const config = llmConfig({ model, tools: { mcp: servers } });
    const opened = await source.open(
      firstTurn('hi', { secrets, outbound: this.outbound, ...turn }),
      config,
      never,
    );
    this.cleanup.push(() => opened.close());
    return opened;
  }

  /** After each test. */
  async reset(): Promise<void> {
    this.stdioAllow = '';
    for (const done of this.cleanup.splice(0).reverse()) await done();
  }

  /** After all tests. */
  stop(): Promise<void> {
    return this.outbound.onApplicationShutdown();
  }
}

export const names = ({ tools }: OpenTools): string[] => tools.map(({ name }) => name);

/** Call a tool by the name that the model knows. */
export async function call(opened: OpenTools, name: string, input = {}, signal = never): Promise<ToolResult> {
  const tool = opened.tools.find((each) => each.name === name);
  if (!tool) throw new Error(`no ${name} among ${names(opened).join(', ')}`);
  return tool.execute(input, { id: 'call-1', key: 'key-1', lane: 1, signal });
}
