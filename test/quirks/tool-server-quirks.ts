import type { Quirk } from './quirk.js';

/** Kinds of MCP servers. */
export const TOOL_SERVER_PEERS = ['http', 'stdio'] as const;

export type ToolServerQuirk = Quirk & { on: readonly (typeof TOOL_SERVER_PEERS)[number][] };

/** What an MCP server does. */
export const TOOL_SERVER_QUIRKS: readonly ToolServerQuirk[] = [];
