// An MCP server over stdio: `node stdio-server.mjs [prefix]`. Its tools return facts about the process.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { spawn } from 'node:child_process';

const says = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

/** A grandchild that would outlive the server, and a server that does not end by itself. */
function stay() {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  setInterval(() => {}, 1000);
  process.on('SIGTERM', () => {});
  return says({ pid: process.pid, child: child.pid });
}

let count = 0;

const tools = {
  /** What the process remembers. */
  count: () => says({ count: ++count, pid: process.pid }),
  environment: () => says(process.env),
  arguments: () => says(process.argv.slice(2)),
  pid: () => says(process.pid),
  stay,
  crash: () => process.exit(3),
};

const server = new Server({ name: 'stdio', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })),
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => tools[params.name]());
console.error('the server has started');
await server.connect(new StdioServerTransport());
