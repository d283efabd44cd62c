import { parseFields } from '@baton/a2a';
import { mcpServers } from './mcp-config.js';

const read = (...servers: object[]) => parseFields(mcpServers, servers, 'mcp');

describe('the MCP servers of an agent', () => {
  it('need a name and a URL', () => {
    expect(read({ name: 'files', url: 'https://mcp.example/mcp' })).toEqual([
      {
        name: 'files',
        url: 'https://mcp.example/mcp',
        headers: {},
        instructions: true,
        optional: false,
        connectTimeout: 10_000,
        timeout: 60_000,
        totalTimeout: 3_600_000,
        resultLimit: 50_000,
      },
    ]);
  });

  it('or a name and a command', () => {
    const env = { TOKEN: { secret: 'notes' } };
    expect(read({ name: 'notes', command: 'npx', args: ['-y', 'notes'], env })).toMatchObject([
      { command: 'npx', args: ['-y', 'notes'], env: { TOKEN: { secret: 'notes', prefix: '' } } },
    ]);
  });

  it('are sixteen at the most', () => {
    const servers = (count: number): object[] =>
      Array.from({ length: count }, (_, i) => ({ name: `server-${i}`, url }));
    expect(read(...servers(16))).toHaveLength(16);
    expect(() => read(...servers(17))).toThrow(/mcp.*16/);
  });

  const url = 'https://mcp.example/mcp';
  it.each([
    [{ url }, 'mcp[0].name: is missing'],
    [{ name: 'a b', url }, 'mcp[0].name: must be 1 to 32 letters'],
    [{ name: 'a', url: 'ftp://x/' }, 'mcp[0].url: must be an http or https URL'],
    [{ name: 'a', url, allow: 'read' }, 'mcp[0].allow: must be "all", or a list of names of tools'],
    [{ name: 'a', url, timeout: 60 }, 'mcp[0].timeout: must be a duration such as 500ms'],
    [{ name: 'a', url, transport: 'stdio' }, 'mcp[0].transport: must be http or sse'],
    [{ name: 'a', url, headers: { Host: 'x' } }, 'mcp[0].headers'],
    [{ name: 'a', url, headers: { 'X-Key': { name: 'x' } } }, 'mcp[0].headers.X-Key.secret: is missing'],
    [{ name: 'a', command: 'x', env: { 'A=B': 'x' } }, 'mcp[0].env'],
    [{ name: 'a', url, aprove: 'all' }, 'mcp[0].aprove: is not known here'],
  ])('%j: %s', (server, reason) => {
    expect(() => read(server)).toThrow(reason);
  });

  it('have different names', () => {
    expect(() => read({ name: 'a', url }, { name: 'a', url })).toThrow('must have a name of its own');
  });
});
