// node test/support/mcp-server/main.js [port] [token]: an MCP server with a few tools, to try an agent with.
require('../load-typescript.js');
const { TestMcpServer } = require('./mcp-server.ts');
const { says } = require('./script.ts');

const notes = [];
const number = { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] };
const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const tools = [
  {
    name: 'time',
    description: 'Says what time it is, in UTC.',
    annotations: { readOnlyHint: true },
    call: () => says(new Date().toISOString()),
  },
  {
    name: 'list_notes',
    description: 'Lists all notes.',
    annotations: { readOnlyHint: true },
    call: () => says(notes.join('\n') || 'There are none.'),
  },
  {
    name: 'add_note',
    description: 'Writes a note.',
    inputSchema: text,
    call: (input) => says(`This is note ${notes.push(input.text)}.`),
  },
  {
    name: 'delete_note',
    description: 'Deletes a note.',
    inputSchema: number,
    call: ({ number: n }) =>
      says(notes.splice(n - 1, 1).length > 0 ? `Note ${n} is gone.` : `There is no note ${n}.`),
  },
];

const [port = '9393', token] = process.argv.slice(2);
const authorization = token === undefined ? undefined : `Bearer ${token}`;
new TestMcpServer({ tools, authorization, port: Number(port) }).start().then((server) => {
  console.log(`an MCP server listens at ${server.url}`);
});
