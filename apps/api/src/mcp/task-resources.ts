import { type ErrorKind, ProtocolError, shortened, V1_0_CODEC } from '@baton/a2a';
import { ArtifactPages } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { CallResolver } from '../core/call-resolver.js';
import type { HttpExchange } from '../http/requests.js';
import { McpError } from './mcp-error.js';
import { MCP_CODEC, MCP_PROFILE } from './mcp-profile.js';
import type { McpRequest } from './mcp-request.js';
import { artifactUri, type ResourceContent, resourceContents } from './resource-contents.js';

/** Where one page of an artifact begins, in an address of ours. */
interface ArtifactAddress {
  taskId: string;
  artifactId: string;
  position?: { head: number; after: number };
}

const ADDRESS =
  /^baton:\/\/tasks\/([\da-f-]{36})\/artifacts\/([^/?#]{1,2048})(?:\?head=(\d{1,10})&after=(\d{1,10}))?(?:#\d{1,10})?$/;

/** What `resources/templates/list` shows. */
export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: 'baton://tasks/{taskId}/artifacts/{artifactId}',
    name: 'artifact',
    title: 'Artifact of a task',
    description:
      'What an agent has made. The results of tools have the addresses. A large one has several pages: ' +
      '_meta["baton/nextUri"] is the address of the next one.',
  },
];

/** The artifacts of tasks as resources of MCP, a page at a time. */
@Injectable()
export class TaskResources {
  constructor(
    private readonly calls: CallResolver,
    private readonly pages: ArtifactPages,
  ) {}

  /**
   * One page of an artifact.
   * @param pathAgent the agent that the path names
   * @throws McpError for an invalid address, or for a task that does not exist for the caller
   */
  async read(
    uri: string,
    request: McpRequest,
    { exchange, pathAgent }: { exchange: HttpExchange; pathAgent: string | undefined },
  ): Promise<ResourceContent[]> {
    const address = addressIn(uri);
    if (!address) throw unknownResource(uri, request);
    const { taskId, artifactId, position } = address;
    const call = V1_0_CODEC.decode('GetTask', { id: taskId, historyLength: 0 });
    const decoded = { profile: MCP_PROFILE, codec: MCP_CODEC, call, pathAgent, params: {} };
    try {
      const { context } = await this.calls.resolve(decoded, exchange);
      const { head, pieces, next } = await this.pages.page(context, taskId, position, artifactId);
      const [piece] = pieces;
      if (!piece) throw unknownResource(uri, request);
      const first = artifactUri(taskId, artifactId);
      const nextUri = next && `${first}?head=${String(head)}&after=${String(next.after)}`;
      const meta = {
        ...(nextUri !== undefined && { 'baton/nextUri': nextUri }),
        // The agent has begun it anew: what earlier pages had does not count.
        ...(position && !piece.append && { 'baton/replaces': first }),
      };
      const contents = resourceContents(piece.artifact.parts, uri);
      return contents.map((content) => ({
        ...content,
        ...(Object.keys(meta).length > 0 && { _meta: meta }),
      }));
    } catch (error) {
      if (error instanceof ProtocolError && UNKNOWN.has(error.kind)) throw unknownResource(uri, request);
      throw error;
    }
  }
}

/** What an address of a task that does not exist for the caller leads to; also one whose page lies beyond the task's end. */
const UNKNOWN: ReadonlySet<ErrorKind> = new Set(['task-not-found', 'agent-not-found', 'invalid-params']);

function addressIn(uri: string): ArtifactAddress | undefined {
  const [, taskId, encoded, head, after] = ADDRESS.exec(uri) ?? [];
  if (taskId === undefined || encoded === undefined) return undefined;
  const position = head === undefined ? undefined : { head: Number(head), after: Number(after) };
  try {
    return { taskId, artifactId: decodeURIComponent(encoded), ...(position && { position }) };
  } catch {
    return undefined;
  }
}

function unknownResource(uri: string, { isModern }: McpRequest): McpError {
  const own = isModern ? 'unknownResource' : 'resourceNotFound';
  return new McpError(own, `Resource not found: ${shortened(uri, 256)}`, { uri: shortened(uri, 2_048) });
}
