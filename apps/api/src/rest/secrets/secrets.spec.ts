import { randomBytes } from 'node:crypto';
import { type FakeApi, startFakeApi } from '../../../../../test/support/api/fake-api.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi({ BATON_MASTER_KEY: randomBytes(32).toString('base64') });
});
afterAll(() => api.close());

async function ask(method: string, path: string, body?: unknown, token = 'admin', to = api) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await fetch(to.url + path, { method, headers, body: sent });
  const text = await answer.text();
  return { status: answer.status, json: text && (JSON.parse(text) as unknown), text };
}
const set = (name: string, value = 'sk-very-secret') => ask('PUT', `/v1/secrets/${name}`, { value });

describe('a tenant’s secrets', () => {
  it('are set, listed by name without their values, page by page, and removed', async () => {
    expect(await set('openai')).toMatchObject({
      status: 200,
      json: {
        name: 'openai',
        origins: ['https://api.openai.com'],
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    });
    await set('anthropic');
    const first = await ask('GET', '/v1/secrets?limit=1');
    const { next_cursor: cursor } = first.json as { next_cursor: string };
    const second = await ask('GET', `/v1/secrets?limit=1&cursor=${cursor}`);
    expect(first.json).toMatchObject({ secrets: [{ name: 'anthropic' }] });
    expect(second.json).toMatchObject({ secrets: [{ name: 'openai' }], next_cursor: null });
    expect(first.text + second.text).not.toContain('sk-very-secret');
    expect(JSON.stringify(api.log)).not.toContain('sk-very-secret');
    expect(await ask('DELETE', '/v1/secrets/openai')).toMatchObject({ status: 204, text: '' });
    for (const name of ['openai', 'never-was']) {
      expect((await ask('DELETE', `/v1/secrets/${name}`)).status).toBe(404);
    }
    expect((await ask('DELETE', '/v1/secrets/%00')).status).toBe(400);
  });

  it.each([
    ['a value of another type', { value: 7 }, [{ field: 'value', description: expect.any(String) }]],
    ['a value under another name', { valeu: 'x' }, [{ field: 'value' }, { field: 'valeu' }]],
    ['no object', 'text', [{ field: 'the body' }]],
  ])('are not set by %s', async (_what, body, fields) => {
    expect(await ask('PUT', '/v1/secrets/a', JSON.stringify(body))).toMatchObject({
      status: 400,
      json: { error: { code: 400, status: 'INVALID_PARAMS', fields } },
    });
  });

  it.each([
    ['no JSON', '{"value":', 'is not JSON'],
    ['nothing', '', 'the body is missing'],
    ['an empty value', '{"value":""}', 'give it 1 to'],
  ])('are not set to %s', async (_what, body, message) => {
    const { status, text } = await ask('PUT', '/v1/secrets/a', body);
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
  });

  it.each([
    ['name', 'a%20b', 'x'],
    ['value', 'a', ''],
  ])('are refused by a wrong %s, which the error names', async (field, name, value) => {
    expect(await set(name, value)).toMatchObject({ status: 400, json: { error: { fields: [{ field }] } } });
  });

  it('name the origins that may receive them, set with the value or alone', async () => {
    const origins = ['https://CRM.example/', 'stdio:npx -y @acme/crm'];
    expect(await ask('PUT', '/v1/secrets/crm', { value: 'v', origins })).toMatchObject({
      json: { origins: ['https://crm.example', 'stdio:npx -y @acme/crm'] },
    });
    const changed = { origins: ['http://localhost:8080'] };
    expect(await ask('PATCH', '/v1/secrets/crm', changed)).toMatchObject({ status: 200, json: changed });
    const { json } = await ask('GET', '/v1/secrets');
    expect((json as { secrets: object[] }).secrets).toContainEqual(
      expect.objectContaining({ name: 'crm', ...changed }),
    );
    expect((await ask('PATCH', '/v1/secrets/none', changed)).status).toBe(404);
    expect(await set('plain')).toMatchObject({ json: { origins: [] } });
    for (const name of ['crm', 'plain']) await ask('DELETE', `/v1/secrets/${name}`);
  });

  it.each([
    ['PUT', { value: 'v', origins: ['https://a', 'b.example'] }, 'origins[1]'],
    ['PATCH', { origins: ['https://a/path'] }, 'origins[0]'],
    ['PATCH', { origins: Array(33).fill('https://a') }, 'origins'],
    ['PATCH', { origins: 'https://a' }, 'origins'],
    ['PATCH', { origins: [], value: 'v' }, 'value'],
  ])('are refused by %s of wrong origins: %j', async (method, body, field) => {
    expect(await ask(method, '/v1/secrets/a', body)).toMatchObject({
      status: 400,
      json: { error: { fields: [{ field }] } },
    });
  });

  it('need their scope for every operation', async () => {
    for (const [method, path, body] of [
      ['GET', '/v1/secrets', undefined],
      ['PUT', '/v1/secrets/a', { value: 'x' }],
      ['PATCH', '/v1/secrets/a', { origins: [] }],
      ['DELETE', '/v1/secrets/a', undefined],
    ] as const) {
      const { status, text } = await ask(method, path, body, 'caller');
      expect([status, text]).toEqual([403, expect.stringContaining('the scope secrets:write')]);
    }
  });

  it('are refused with the remedy where the operator has set no key', async () => {
    const without = await startFakeApi();
    const { status, text } = await ask('PUT', '/v1/secrets/a', { value: 'x' }, 'admin', without);
    await without.close();
    expect([status, text]).toEqual([501, expect.stringContaining('must set BATON_MASTER_KEY')]);
  });
});
