import type { AgentTool } from '../tool-sources.js';
import type { ToolList } from './tool-list.js';

/** `modern`: revision 2026-07-28 and later, without sessions. `legacy`: the revisions before it, which begin with `initialize`. */
export type ServerEra = 'modern' | 'legacy';

export interface ServerCall {
  repeat: AgentTool['repeat'];
  /** The effect key of the call, for servers that recognize a repetition by it. */
  key: string;
  signal: AbortSignal;
  /** Called with the progress that the server reports. */
  report?: ((text: string) => void) | undefined;
}

/** The way to one MCP server, for one turn. */
export interface ServerConnection {
  readonly era: ServerEra;
  /**
   * Adds all tools page by page. Rejects with an McpFailure or another Error if the server is unreachable or its list cannot be read,
   * with ToolListExcess if it is too large.
   */
  listTools(list: ToolList, signal: AbortSignal): Promise<void>;
  /** Reads a resource. Rejects as a tool call. @returns the result as the server wrote it */
  readResource(uri: string, call: Pick<ServerCall, 'signal' | 'report'>): Promise<unknown>;
  /** The server's instructions for its tools, once they are listed. */
  readonly instructions: string | undefined;
  /** Never rejects. */
  close(): Promise<void>;
}
