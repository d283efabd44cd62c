import type { McpFailure } from './mcp-failure.js';

/** What a link knows of its server when a request has failed. */
export interface LinkReport {
  /** Why the server does not answer. */
  failure?: McpFailure | undefined;
  /** The end of what its program has written besides messages. */
  said?: string;
}
