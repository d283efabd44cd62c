import { shortened } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger, Metrics } from '@baton/telemetry';
import pLimit from 'p-limit';
import type { SignedInCall } from '../../../../access-tokens.js';
import { type Turn, type TurnSecrets } from '../../../../agent-runtime.js';
import { Suspension } from '../../../../suspension.js';
import { ApprovalsPending } from '../../approval/approvals-pending.js';
import type { SignedInFetch } from '../../../../outbound/signed-in-fetch.js';
import { SignInNeeded } from '../../../../sign-in-needed.js';
import { AgentFailure } from '../../agent-failure.js';
import { READ_RESOURCE } from '../../result-output.js';
import type { LlmConfig } from '../../llm-config.js';
import { UndecidedCall } from '../undecided-call.js';
import type {
  AgentTool,
  LinkedResources,
  OpenTools,
  ReadResource,
  ResourceLink,
  ServerInstructions,
  ToolCallContext,
  ToolResult,
  WaitingCall,
} from '../tool-sources.js';
import { connectionTo } from './connection-to.js';
import { type ContextProgram, hasEarlierTurns, programOfContext } from './context-program.js';
import type { KeptPrograms } from './kept-programs.js';
import { fits, type McpServerConfig, type StdioMcpServer } from './mcp-config.js';
import { McpFailure } from './mcp-failure.js';
import { isTransient, isUnknown } from './failure-checks.js';
import { serverFailure, whyUnusable } from './explain-failure.js';
import type { McpConnection } from './mcp-connection.js';
import { ModernConnection } from './modern-connection.js';
import { signedInFetch, linksTo } from './links.js';
import type { RemoteCall } from '../remote-call.js';
import { pollTask } from './poll-task.js';
import { RemoteToolCall } from './remote-tool-call.js';
import type { ServerEras } from './server-eras.js';
import { type ListedTool, ToolList } from './tool-list.js';
import { TotalLimit } from './total-limit.js';
import { ToolListExcess } from './tool-list-excess.js';
import { linkedUris, namesForModel, resourceResult, toolOutput } from './tool-output.js';

/** Dependencies of connections to MCP servers. */
export interface McpPorts {
  environment: Environment;
  logger: Logger;
  metrics: Metrics;
  eras: ServerEras;
  programs: KeptPrograms<ContextProgram>;
}

/** Servers of an agent that open at the same time. Each may send a tool list of 1 MiB. */
const MAX_CONCURRENT_OPENS = 4;

interface OpenServer {
  config: McpServerConfig;
  connection: McpConnection | ModernConnection;
  /** The turn has ended. Never rejects. */
  close: () => Promise<void>;
  /** The notes about the server for the model in this turn. */
  note: string | undefined;
  /** For a server with `oauth`. */
  signedIn: SignedInFetch | undefined;
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
    await Promise.all(servers.map((server) => server.close()));
  };
  const failed = results.find((one) => one.status === 'rejected');
  const excess = excessOf(servers);
  if (failed ?? excess) {
    await close();
    throw failed?.reason ?? new AgentFailure(excess ?? '', { limit: 'toolList' });
  }
  const readResource: ReadResource = (link, call) => readAt(servers, link, call);
  return {
    tools: toolsOf(turn, servers, config),
    instructions: instructionsOf(servers),
    notes: servers.flatMap(({ note }) => note ?? []),
    readResource,
    close,
  };
}

async function openServer(
  turn: Turn,
  config: McpServerConfig,
  ports: McpPorts,
  signal: AbortSignal,
): Promise<OpenServer | undefined> {
  const { environment, logger, metrics, eras, programs } = ports;
  const { tenantId, task, runId, secrets, outbound } = turn;
  const log = logger.child({ tenantId, taskId: task.id, runId, mcpServer: config.name });
  let close: (() => Promise<void>) | undefined;
  const signedIn = signedInFetch(config, { secrets });
  try {
    const known = 'url' in config ? eras.find(tenantId, config.url) : undefined;
    const onError = (error: Error): void =>
      log.debug('MCP connection', { reason: serverFailure(error, secrets.redactor) });
    const linkPorts = { outbound, secrets, environment, log, signedIn };
    const use = isKept(config) ? await programOfContext(turn, config, linkPorts, programs) : undefined;
    const connection =
      use?.program.connection ?? (await connectionTo(config, linkPorts, known, signal, onError));
    close = use ? () => use.release() : () => connection.close();
    const hasLostState = isKept(config) && use?.isNew !== false && (await hasEarlierTurns(turn));
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
    const note = hasLostState ? lostState(config.name) : undefined;
    return { config, connection, close, note, signedIn, secrets, tools, maxFileBytes, onExcess };
  } catch (error) {
    await close?.();
    signal.throwIfAborted();
    // The next turn asks for its revisions again.
    if ('url' in config && !isTransient(error)) eras.forget(tenantId, config.url);
    // The agent may work without an optional server, but its caller can sign in.
    if (signedIn?.needed?.isCallers) throw signedIn.needed;
    if (error instanceof ToolListExcess) metrics.limitExceeded.inc({ limit: 'toolList' });
    const reason = `The MCP server "${config.name}" cannot be used: ${whyUnusable(signedIn?.needed ?? error, secrets.redactor)}`;
    log.warn('MCP server not usable', { reason });
    if (config.optional) return undefined;
    throw new AgentFailure(reason);
  }
}

const isKept = (config: McpServerConfig): config is StdioMcpServer & { keep: number } =>
  'command' in config && config.keep !== undefined;

const lostState = (server: string): string =>
  `The tool server "${server}" has just been started. What it held of earlier messages, such as open pages or sign-ins, is gone.`;

/**
 * Polls the task of a call without opening all servers.
 * @returns undefined: it has ended, it asks, or its server is no longer in the settings
 */
export async function pollCall(
  turn: Turn,
  { tools }: LlmConfig,
  kept: RemoteCall,
  keep: (call: RemoteCall) => Promise<void>,
  { environment, logger }: Pick<McpPorts, 'environment' | 'logger'>,
  signal: AbortSignal,
): Promise<WaitingCall | undefined> {
  const { secrets, outbound } = turn;
  const config = tools.mcp.find(({ name }) => name === kept.server);
  if (!config || !('url' in config) || config.url !== kept.url) return undefined;
  try {
    const { modern } = await linksTo(config, { outbound, secrets, environment, log: logger });
    if (!modern) return undefined;
    const { connectTimeout, timeout } = config;
    const connection = new ModernConnection({ ...modern, connectTimeout, timeout });
    const { state, waitMs } = await pollTask(connection, kept, keep, signal);
    if (!state) return { waitMs };
    if (state.status !== 'working') return undefined;
    const { statusMessage } = state;
    return {
      waitMs,
      ...(statusMessage !== undefined && { said: secrets.redactor.text(statusMessage) }),
    };
  } catch {
    signal.throwIfAborted();
    // The call itself reports the fault.
    return undefined;
  }
}

/** Maximum tools of all servers of an agent. Each is a part of each request to the model. */
const MAX_TOOLS = 2_000;
/** Their total size as JSON, in the memory of each turn. */
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

function toolsOf(turn: Turn, servers: readonly OpenServer[], config: LlmConfig): AgentTool[] {
  const all = servers.flatMap((server) => server.tools.map((tool) => ({ server, tool })));
  const names = namesForModel(
    all.map(({ server, tool }) => ({ server: server.config.name, tool: tool.name })),
  );
  // A fork continues the calls of the task that it is a fork of.
  const isShared = turn.origin !== undefined && turn.origin.effectsOf === undefined;
  const shared = { terms: config.approvals, isShared };
  return all.map(({ server, tool }, i) =>
    agentTool(names[i] ?? tool.name, server, asTakenBy(config.model, tool), shared),
  );
}

function instructionsOf(servers: readonly OpenServer[]): ServerInstructions[] {
  return servers.flatMap(({ config, connection: { instructions }, tools, secrets }) =>
    config.instructions && instructions !== undefined && tools.length > 0
      ? [{ server: config.name, text: secrets.redactor.text(instructions) }]
      : [],
  );
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

/** The context of a call, and the errors of its journal: they end the attempt, and the model does not get them. */
function watched(context: ToolCallContext): { context: ToolCallContext; lost: Set<unknown> } {
  const lost = new Set<unknown>();
  const { keep } = context;
  if (!keep) return { context, lost };
  const kept = async (call: RemoteCall): Promise<void> => {
    try {
      await keep(call);
    } catch (error) {
      lost.add(error);
      throw error;
    }
  };
  return { context: { ...context, keep: kept }, lost };
}

/** The part of a server's result that the model reads, and the resources that it may read there. */
function outputOf(
  name: string,
  result: unknown,
  { config, secrets, maxFileBytes, onExcess }: OpenServer,
): ToolResult {
  const redact = <T>(value: T): T => secrets.redactor.value(value);
  // Before it is cut: a part of a secret would not be recognized.
  const clean = redact(result);
  const output = toolOutput(name, clean, { limit: config.resultLimit, maxFileBytes, redact, onExcess });
  const uris = linkedUris(clean);
  const links: LinkedResources = { server: config.name, ...('url' in config && { url: config.url }), uris };
  return { ...output, ...(uris.length > 0 && { links }) };
}

/** Throws if a server requires a sign-in. @param error of the call: other calls may lack scopes that it has */
function assertSignedIn({ config, signedIn }: OpenServer, error: unknown): void {
  if (signedIn?.needed?.missing && !isSignIn(error)) return;
  if (signedIn?.needed?.isCallers) throw signedIn.needed;
  if (signedIn?.needed)
    throw new AgentFailure(`The MCP server "${config.name}" cannot be used: ${signedIn.needed.message}`);
}

/** Records a call that uses a sign-in. An error of Postgres ends the attempt: a call without a record is not sent. */
async function note(server: OpenServer, call: Pick<SignedInCall, 'name' | 'callId'>): Promise<void> {
  try {
    await server.signedIn?.note({ kind: 'tool', server: server.config.name, ...call });
  } catch (error) {
    assertSignedIn(server, error);
    throw error;
  }
}

function isSignIn(error: unknown): boolean {
  if (error instanceof SignInNeeded) return true;
  return error instanceof Error && isSignIn(error.cause);
}

/** Reads a resource at the server that has linked it, and never at its URI. */
async function readAt(
  servers: readonly OpenServer[],
  { server: name, url, uri }: ResourceLink,
  call: Parameters<ReadResource>[1],
): Promise<ToolResult> {
  const server = servers.find(
    ({ config }) => config.name === name && ('url' in config ? config.url : undefined) === url,
  );
  if (!server)
    return { ok: false, content: `The server ${name}, which has linked the resource, is not there.` };
  await note(server, { name: READ_RESOURCE });
  const limit = new TotalLimit(server.config.totalTimeout, call.signal);
  try {
    const read = await server.connection.readResource(uri, { ...call, signal: limit.signal });
    const result = resourceResult(read);
    if (!result) throw new McpFailure('unreadable', 'its answer to resources/read has no contents');
    return outputOf(READ_RESOURCE, result, server);
  } catch (error) {
    call.signal.throwIfAborted();
    assertSignedIn(server, error);
    const reason = serverFailure(limit.explained(error), server.secrets.redactor);
    const failed = `The resource could not be read at ${name}: ${reason}`;
    return { ok: false, content: failed };
  }
}

function agentTool(
  name: string,
  server: OpenServer,
  tool: ListedTool,
  shared: { terms: LlmConfig['approvals']; isShared: boolean },
): AgentTool {
  const { config, connection, secrets } = server;
  const repeat = repeatOf(config, tool);
  const redact = <T>(value: T): T => secrets.redactor.value(value);
  const make = (input: Record<string, unknown>, context: ToolCallContext): Promise<unknown> => {
    if (connection.era === 'legacy') return connection.callTool(tool, input, { repeat, ...context });
    const url = 'url' in config ? config.url : '';
    const options = { connection, tool, shownAs: name, server: config.name, url, repeat, redact, ...shared };
    return new RemoteToolCall(options, context).run(input);
  };
  return {
    name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    needsApproval: fits(config.approval, tool.name),
    server: config.name,
    repeat,
    execute: async (input, given) => {
      const { context, lost } = watched(given);
      // A call that its server executes as a task of its own was recorded before it was sent.
      if (!context.kept?.task) await note(server, { name: tool.name, callId: context.id });
      const limit = new TotalLimit(config.totalTimeout, context.signal);
      try {
        const made = await make(input as Record<string, unknown>, { ...context, signal: limit.signal });
        return outputOf(name, made, server);
      } catch (error) {
        context.signal.throwIfAborted();
        assertSignedIn(server, error);
        if (lost.has(error) || error instanceof Suspension || error instanceof ApprovalsPending) throw error;
        if (repeat === 'ask' && isUnknown(limit.explained(error)))
          throw new UndecidedCall('the outcome of the call is not known');
        const reason = serverFailure(limit.explained(error), secrets.redactor);
        const failed = `The call of ${tool.name} at ${config.name} failed: ${reason}`;
        return { ok: false, content: failed };
      }
    },
  };
}
