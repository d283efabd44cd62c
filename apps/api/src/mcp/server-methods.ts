import { hasScope, isAllowed, type ListedAgent, listedAgent, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { agentTool, CANCEL_TOOL, STATUS_TOOL, TASK_CANCEL, TASK_STATUS, type Tool } from './agent-tools.js';
import { LIST_TTL_MS, listed, type McpCall } from './mcp-call.js';
import { type McpRequest, negotiated, TASKS, VERSIONS } from './mcp-request.js';
import { TaskResources } from './task-resources.js';

const SERVER = { name: 'baton', title: 'Baton', version: '1' };
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
/** Tools on a page: each has its schema, and a model reads them all. */
const PAGE = 100;

const INSTRUCTIONS =
  'Each tool is an agent. A call becomes a task, which continues if you disconnect. A call that takes long returns a taskId: ' +
  `${TASK_STATUS} shows the task, ${TASK_CANCEL} cancels it. Send the contextId of a result to continue a conversation.`;

/** The methods that show what the server has: its versions and features, its tools and its resources. */
@Injectable()
export class ServerMethods {
  constructor(
    private readonly directory: AgentDirectory,
    private readonly resources: TaskResources,
  ) {}

  initialize({ params }: McpRequest): unknown {
    const { protocolVersion } = params;
    return {
      protocolVersion: negotiated(protocolVersion),
      capabilities: { tools: {}, resources: {} },
      serverInfo: SERVER,
      instructions: INSTRUCTIONS,
    };
  }

  discover(): unknown {
    return {
      resultType: 'complete',
      supportedVersions: VERSIONS,
      capabilities: { tools: {}, resources: {}, extensions: { [TASKS]: {} } },
      instructions: INSTRUCTIONS,
      ttlMs: LIST_TTL_MS,
      cacheScope: 'private',
      _meta: { [SERVER_INFO]: SERVER },
    };
  }

  /** The agents that the caller may call, by slug, and the tools for tasks on the first page. */
  async listTools({ request, exchange, agent }: McpCall): Promise<unknown> {
    const { tenantId, scopes, agents } = callerOf(exchange.request);
    const after = readCursor(request.params.cursor);
    const mayCall = hasScope(['agents:call'], scopes);
    const found: readonly ListedAgent[] = agent ? [listedAgent(agent)] : await this.directory.list(tenantId);
    const callable = found
      .filter((each) => mayCall && each.status === undefined && isAllowed(agents, each) && each.slug > after)
      .sort((a, b) => (a.slug < b.slug ? -1 : 1));
    const page = callable.slice(0, PAGE);
    const ofTasks: Tool[] = after === '' ? [STATUS_TOOL, ...(mayCall ? [CANCEL_TOOL] : [])] : [];
    const last = callable.length > PAGE ? page.at(-1) : undefined;
    return listed(request, {
      tools: [...ofTasks, ...page.map(agentTool)],
      ...(last && { nextCursor: Buffer.from(last.slug).toString('base64url') }),
    });
  }

  async readResource({ request, exchange, agent }: McpCall): Promise<unknown> {
    const { uri } = request.params;
    if (typeof uri !== 'string')
      throw ProtocolError.invalidParams('params.uri', 'must be the address of a resource');
    const contents = await this.resources.read(uri, request, { exchange, pathAgent: agent?.slug });
    // The agent may still be at work.
    return listed(request, { contents }, 0);
  }
}

/** The slug after which a page begins. */
function readCursor(cursor: unknown): string {
  if (cursor === undefined || cursor === null) return '';
  const slug = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : '';
  if (slug !== '' && Buffer.from(slug).toString('base64url') === cursor) return slug;
  throw ProtocolError.invalidParams(
    'params.cursor',
    'must be the nextCursor of an earlier page, or left out',
  );
}
