import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestMcpServer, startMcpServer } from '../../../../../test/support/mcp-server/mcp-server.js';
import { textTool } from '../../../../../test/support/mcp-server/script.js';
import { RawMcpServer } from '../../../../../test/support/mcp-server/raw-server.js';
import { Tenant, url } from './catalog-api.fixture.js';

const SECRET = 's3cret-of-the-desk';

describe('the check of the tools of a new definition', () => {
  let tenant: Tenant;
  let server: TestMcpServer;
  let raw: RawMcpServer | undefined;
  beforeAll(async () => {
    [tenant, server] = await Promise.all([
      Tenant.create(),
      startMcpServer({
        tools: [textTool('add_note', 'ok'), textTool('delete_note', 'ok')],
        authorization: `Bearer ${SECRET}`,
      }),
    ]);
    await setSecret('desk', SECRET);
    await setSecret('wrong', 'another-secret');
  });
  afterAll(() => Promise.all([server.stop(), raw?.stop()]));

  async function setSecret(name: string, value: string): Promise<void> {
    const response = await fetch(`${url}/v1/secrets/${name}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ value, origins: [new URL(server.url).origin] }),
    });
    expect(response.ok).toBe(true);
  }
  const desk = (more: object = {}) => ({
    name: 'desk',
    url: server.url,
    connectTimeout: '50s',
    headers: { Authorization: { secret: 'desk', prefix: 'Bearer ' } },
    ...more,
  });
  const check = async (servers: object[], query = 'dryRun=true&checkTools=true') => {
    const config = { model: 'openai/m', tools: { mcp: servers } };
    const agent = { name: 'Clerk', description: 'Keeps notes', runtime: 'llm', config };
    const { status, json, text } = await tenant.ask('PUT', `/clerk?${query}`, agent);
    const { fields = [] } =
      (json as unknown as { error?: { fields?: { field: string; description: string }[] } }).error ?? {};
    return {
      status,
      json,
      text,
      fields: Object.fromEntries(fields.map((each) => [each.field, each.description])),
    };
  };

  it('accepts patterns that match tools, and writes nothing', async () => {
    const servers = [
      desk({ allow: ['*_note'], approval: ['delete_*'], neverRepeat: ['delete_note'] }),
      desk({ name: 'two' }),
    ];
    expect(await check(servers)).toMatchObject({ status: 200, json: { outcome: 'created', dry_run: true } });
    expect((await tenant.ask('GET', '/clerk')).status).toBe(404);
  });

  it('refuses a pattern that matches no tool: the fault names the pattern and the tools', async () => {
    const { status, fields, text } = await check([
      desk({ allow: ['add_note', 'remove_*'], approval: ['delete_*', 'deleet_note'], neverRepeat: ['x'] }),
    ]);
    expect(status).toBe(400);
    const there = 'It has add_note, delete_note';
    expect(fields).toEqual({
      'config.tools.mcp[0].allow[1]': `"remove_*" fits no tool of the MCP server "desk". ${there}`,
      'config.tools.mcp[0].approval[1]': `"deleet_note" fits no tool of the MCP server "desk". ${there}`,
      'config.tools.mcp[0].neverRepeat[0]': `"x" fits no tool of the MCP server "desk". ${there}`,
    });
    expect(text).not.toContain(SECRET);
  });

  it('explains why a server cannot be asked', async () => {
    const { status, fields, text } = await check([
      desk({ name: 'refused', headers: { Authorization: { secret: 'wrong' } } }),
      desk({ name: 'private', url: 'http://10.0.0.1/mcp', headers: {} }),
      desk({ name: 'keyless', headers: { Authorization: { secret: 'missing' } } }),
    ]);
    expect(status).toBe(400);
    const prefix = (name: string) => `the MCP server "${name}" cannot be used: `;
    expect(fields).toMatchObject({
      'config.tools.mcp[0].url': `${prefix('refused')}it does not accept the credentials (HTTP 401): "who are you?". Put a token that the server accepts into headers`,
      'config.tools.mcp[1].url': expect.stringContaining(prefix('private')),
      'config.tools.mcp[2].url': expect.stringContaining('the secret "missing"'),
    });
    expect(text).not.toContain('another-secret');
  });

  it('warns of unusable tools with the reason, and refuses one that `allow` names', async () => {
    const list = (name: unknown, inputSchema: unknown) => ({ name, inputSchema });
    const tools = [
      list('good', { type: 'object' }),
      list('odd', { type: 'array' }),
      list(7, {}),
      list('good', {}),
    ];
    raw = await RawMcpServer.start({ quirks: { 'tools/list': { result: { tools } } } });
    const server = { name: 'raw', url: raw.url, connectTimeout: '50s' };
    const why = 'an input schema of type "array", not "object"';
    expect(await check([server])).toMatchObject({
      status: 200,
      json: {
        unchecked_tools: [
          { field: 'config.tools.mcp[0]', description: `the tool "odd" is left out: it has ${why}` },
          {
            description: expect.stringContaining(
              '"number 3 of its list" is left out: it has a name that is a number',
            ),
          },
          { description: 'the tool "good" is left out: it is listed a second time' },
        ],
      },
    });
    expect((await check([{ ...server, allow: ['good', 'odd'], approval: ['odd'] }])).fields).toEqual({
      'config.tools.mcp[0].allow[1]': `the tool "odd" of the MCP server "raw" cannot be used: it has ${why}`,
    });
    expect((await check([{ ...server, allow: ['g*'] }])).json).toMatchObject({
      unchecked_tools: [{ description: 'the tool "good" is left out: it is listed a second time' }],
    });
  });

  it('runs for new agents and for changes', async () => {
    const config = { model: 'openai/m', tools: { mcp: [desk({ allow: ['remove_*'] })] } };
    const agent = { name: 'Clerk', description: 'Keeps notes', runtime: 'llm', config };
    const query = '?dryRun=true&checkTools=true';
    const fault = { error: { fields: [{ field: 'config.tools.mcp[0].allow[0]' }] } };
    expect(await tenant.ask('POST', query, agent)).toMatchObject({ status: 400, json: fault });
    const allowed = { ...config, tools: { mcp: [desk()] } };
    expect((await tenant.ask('PUT', '/changed', { ...agent, config: allowed })).status).toBe(201);
    expect(await tenant.ask('PATCH', `/changed${query}`, { config })).toMatchObject({
      status: 400,
      json: fault,
    });
  });

  it('does not start programs, which only workers do', async () => {
    const { status, json } = await check([{ name: 'local', command: 'notes', approval: ['delete_*'] }]);
    expect([status, json]).toMatchObject([
      200,
      {
        unchecked_tools: [
          {
            field: 'config.tools.mcp[0].command',
            description: 'its tools are not checked: only workers start programs',
          },
        ],
      },
    ]);
  });

  it('runs before a write, one check at a time', async () => {
    expect(await check([desk()], 'checkTools=true')).toMatchObject({ status: 400 });
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const asked = once(silent, 'connection');
    const { port } = silent.address() as AddressInfo;
    const first = check([desk({ url: `http://127.0.0.1:${port}/mcp`, headers: {} })]);
    await asked;
    const second = await check([desk()]);
    expect([second.status, second.text]).toEqual([503, expect.stringContaining('another check of tools')]);
    silent.close();
    for (const socket of sockets) socket.destroy();
    expect(Object.keys((await first).fields)).toEqual(['config.tools.mcp[0].url']);
    expect(await check([desk()])).toMatchObject({ status: 200 });
  });
});
