import { Database } from '@baton/database';
import { app, baton, json, url } from './operator.fixture.js';

let token: string;
beforeAll(async () => {
  await json('tenants create signing');
  ({ token } = await json<{ token: string }>(
    'tokens create --tenant signing --scopes agents:read,agents:write,secrets:write',
  ));
  const mcp = ['crm', 'wiki'].map((name) => ({
    name,
    url: `https://${name}.example.com/mcp`,
    oauth: {},
  }));
  const response = await fetch(`${url}/v1/agents/desk`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'Desk',
      description: 'Answers.',
      runtime: 'llm',
      config: { model: 'openai/m', tools: { mcp } },
    }),
  });
  expect([response.status, await response.text()]).toEqual([201, expect.anything()]);
});

const connections = (line: string) => baton(`connections ${line}`, { BATON_URL: url, BATON_TOKEN: token });

describe('baton connections', () => {
  it('sign-in prints a link for a browser', async () => {
    const { code, out } = await connections('sign-in desk --server crm');
    expect(code).toBe(0);
    expect(out).toMatch(/^Open this link in a browser until .+:\nhttp:\S+\/oauth\/sign-in\?ticket=\S+$/);
    expect((await connections('sign-in desk')).err).toContain('must be one of the servers with oauth');
  });

  it('list shows the sign-ins, and sign-out ends one', async () => {
    expect((await connections('list')).err).toContain(
      'No sign-ins yet: npx baton connections sign-in <agent>',
    );
    const text = `INSERT INTO oauth_connections (tenant_id, id, resource, issuer, key_id, nonce, ciphertext, created_by)
      SELECT id, gen_random_uuid(), 'https://crm.example.com/mcp', 'https://as.example.com', 'k', '', '', 'token:1'
      FROM tenants WHERE slug = 'signing' RETURNING id::text`;
    const [row] = await app.get(Database, { strict: false }).systemQuery({ text }, []);
    const id = row!.id as string;
    expect((await connections('list')).out).toMatch(
      new RegExp(
        `^ID .*\\n${id} +https://crm\\.example\\.com/mcp +all +https://as\\.example\\.com +- +signed-in +unknown +\\S+ \\S+ \\S+ +token:1$`,
      ),
    );
    expect((await connections(`sign-out ${id}`)).out).toBe(`Connection ${id} is signed out.`);
    expect((await connections(`sign-out ${id}`)).err).toContain(`Connection not found: ${id}`);
  });
});
