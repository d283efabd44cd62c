import {
  type ModernMcpServer,
  type ModernTool,
  startModernServer,
} from '../../../../../../../test/support/mcp-server/modern-server.js';
import type { McpBench } from './mcp-tools.fixture.js';

/** A server whose tool `report` does this. It is stopped after the test. */
export async function startReportServer(mcp: McpBench, call: ModernTool['call']): Promise<ModernMcpServer> {
  const server = await startModernServer({ tools: [{ name: 'report', call }] });
  mcp.atReset(() => server.stop());
  return server;
}

/** The result of a tool. */
export const says = (text: string) => ({ content: [{ type: 'text', text }] });

/** A question with one field. */
export const form = (message: string) => ({
  method: 'elicitation/create',
  params: {
    message,
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
});

/** Options of a task after whose begin the run is suspended. */
export const SLOW = { pollIntervalMs: 5_000 };
