import { oauthServers } from './oauth-servers.js';
import { remoteConfigSchema } from './runtimes/remote-a2a/remote-config.js';

const settings = { credentials: 'tenant' };

it('finds the servers at which an agent signs in', () => {
  const mcp = [
    { name: 'crm', url: 'https://crm.example/mcp', oauth: {} },
    { name: 'open', url: 'https://open.example/mcp' },
  ];
  expect(oauthServers({ runtime: 'llm', config: { model: 'openai/m', tools: { mcp } } })).toEqual([
    { server: 'crm', url: 'https://crm.example/mcp', settings },
  ]);
  const config = { card: 'https://far.example', oauth: {} };
  expect(oauthServers({ runtime: 'remote-a2a', config })).toEqual([
    { server: 'agent', url: 'https://far.example', settings },
  ]);
  expect(oauthServers({ runtime: 'echo', config: {} })).toEqual([]);
});

it.each([
  [
    { oauth: { credentials: 'exchange', issuer: 'https://id.example', clientId: 'baton' } },
    'must be set with credentials: exchange',
  ],
  [{ oauth: { audience: 'far' } }, 'is only for credentials: exchange'],
  [{ oauth: {}, headers: { Authorization: 'x' } }, 'is set by oauth: remove one of the two'],
])('refuses %j in the settings of a remote agent', (more, reason) => {
  const { error } = remoteConfigSchema.safeParse({ card: 'https://far.example', ...more });
  expect(error?.issues.map(({ message }) => message)).toEqual([reason]);
});
