import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** A way to an MCP server, not yet connected. */
export interface Link {
  transport: Transport;
  /** Say goodbye; takes a second at most and never rejects. The transport is closed afterwards. */
  leave(): Promise<void>;
}
