import type { McpFailure } from './mcp-failure.js';

/** Facts of a link about its server after a failed request. */
export interface LinkReport {
  /** Why the server does not answer. */
  failure?: McpFailure | undefined;
  /** The end of the program's other output. */
  serverText?: string;
}
