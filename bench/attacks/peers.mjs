// Attacks of bench/neighbours.mjs with remote agents, MCP servers and model providers that do what a hostile one would (peer.mjs).
const HOW = [
  'silent',
  'drip',
  'headers',
  'hints',
  'huge',
  'idle-stream',
  'tiny-events',
  'tiny-chunks',
  'comments',
  'gzip-bomb',
  'gzip-events',
];

export const PEER_ATTACKS = {
  ...Object.fromEntries(
    // Also an honest one, which shows what the number of calls alone costs others.
    ['honest', ...HOW, 'updates'].map((how) => [
      `remote agent: ${how}`,
      {
        isMany: true,
        prepare: (a) => a.putRemote(`remote-${how}`, `${a.peer}/remote/${how}`),
        act: (a) => a.send(`remote-${how}`, 'hello'),
      },
    ]),
  ),
  ...Object.fromEntries(
    HOW.map((how) => [
      `MCP server: ${how}`,
      {
        isMany: true,
        prepare: (a) =>
          a.putAgent(`mcp-${how}`, { tools: { mcp: [{ name: 'desk', url: `${a.peer}/mcp-${how}` }] } }),
        act: (a) => a.send(`mcp-${how}`, 'json'),
      },
    ]),
  ),
  ...Object.fromEntries(
    [...HOW, 'words'].map((how) => [
      `model: ${how}`,
      {
        isMany: true,
        prepare: (a) => a.putAgent(`model-${how}`, { baseUrl: `${a.peer}/model/${how}/v1` }),
        act: (a) => a.send(`model-${how}`, 'hello'),
      },
    ]),
  ),
};
