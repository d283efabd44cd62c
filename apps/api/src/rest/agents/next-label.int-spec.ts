import { AgentCatalogStore, PLATFORM_ACTOR } from '@baton/database';
import { app, ECHO, Tenant, url } from './catalog-api.fixture.js';

const DRAFT = { ...ECHO, description: 'What an author writes' };

/** An agent whose version 2 has the label next with that share. */
async function labeled(share: number): Promise<Tenant> {
  const tenant = await Tenant.create();
  await tenant.ask('POST', '', { ...ECHO, slug: 'mine' });
  expect((await tenant.ask('PUT', '/mine/next', { share, agent: DRAFT })).status).toBe(200);
  return tenant;
}

const nextOf = async (tenant: Tenant): Promise<unknown> => (await tenant.ask('GET', '/mine')).json.next;

/** Sends a message with the label. */
async function send(tenant: Tenant, label: string) {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] };
  const params = { message, configuration: { returnImmediately: true } };
  const response = await fetch(`${url}/agents/mine`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${tenant.token}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
      'baton-agent-label': label,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  });
  const { result, error } = (await response.json()) as {
    result?: { task: { id: string } };
    error?: { message: string };
  };
  return { status: response.status, id: result?.task.id, error: error?.message };
}

async function versionOf(tenant: Tenant, taskId: string | undefined): Promise<unknown> {
  const headers = { authorization: `Bearer ${tenant.token}` };
  const response = await fetch(`${url}/v1/tasks/${taskId ?? ''}`, { headers });
  return ((await response.json()) as { agent_version: unknown }).agent_version;
}

describe('a version that is tried', () => {
  it('does not take the label from a version with a share, unless its author names that one', async () => {
    const tenant = await labeled(20);
    for (const wanted of [
      { agent: DRAFT },
      { agent: DRAFT, replaces: null },
      { agent: DRAFT, replaces: 1 },
    ]) {
      const refused = await tenant.ask('PUT', '/mine/next', { share: 0, ...wanted });
      expect(refused.status).toBe(409);
      expect(refused.json.error.message).toContain('version 2 of "mine" has the label "next"');
    }
    expect(await nextOf(tenant)).toMatchObject({ version: 2, share: 20 });
    // The same version may lose its share, and another one may get more.
    expect((await tenant.ask('PUT', '/mine/next', { share: 0 })).status).toBe(200);
    expect((await tenant.ask('PUT', '/mine/next', { share: 30 })).status).toBe(200);
    const named = await tenant.ask('PUT', '/mine/next', { share: 0, agent: DRAFT, replaces: 2 });
    expect(named.json.next).toMatchObject({ version: 3, share: 0 });
    expect((await tenant.ask('PUT', '/mine/next', { share: 0, agent: DRAFT })).json.next).toMatchObject({
      version: 4,
    });
    expect((await tenant.ask('PUT', '/mine/next', { share: 10, agent: DRAFT })).json.next).toMatchObject({
      version: 5,
      share: 10,
    });
  });

  it('does not take it from one that gets its share at the same moment', async () => {
    const tenant = await labeled(0);
    const store = app.get(AgentCatalogStore, { strict: false });
    const setNext = store.setNext.bind(store);
    // A colleague is faster, after all checks.
    const spy = jest.spyOn(store, 'setNext').mockImplementationOnce(async (next, actor) => {
      await setNext({ ...next, version: 2, share: 50 }, actor);
      return setNext(next, actor);
    });
    const refused = await tenant.ask('PUT', '/mine/next', { share: 0, agent: DRAFT });
    spy.mockRestore();
    expect(refused.status).toBe(409);
    expect(refused.json.error.message).toContain('50 % of new tasks');
    expect(await nextOf(tenant)).toMatchObject({ version: 2, share: 50 });
  });

  it('is withdrawn by its number, and only as long as it has no share', async () => {
    const tenant = await labeled(0);
    const other = await tenant.ask('DELETE', '/mine/next?version=7');
    expect(other.status).toBe(409);
    expect(other.json.error.message).toBe(
      'version 2 of "mine" has the label "next", not version 7: read the agent again',
    );
    await tenant.ask('PUT', '/mine/next', { share: 5 });
    const shared = await tenant.ask('DELETE', '/mine/next?version=2&share=0');
    expect(shared.status).toBe(409);
    expect(shared.json.error.message).toContain('has 5 % of new tasks now');
    expect(await nextOf(tenant)).toMatchObject({ version: 2, share: 5 });
    expect((await tenant.ask('DELETE', '/mine/next?version=2&share=5')).status).toBe(204);
    expect(await nextOf(tenant)).toBeUndefined();
    expect((await tenant.ask('DELETE', '/mine/next?version=2')).status).toBe(409);
    expect((await tenant.ask('DELETE', '/mine/next?version=x')).status).toBe(400);
  });

  it('answers a message that names it, or none does', async () => {
    const tenant = await labeled(0);
    const first = await send(tenant, 'next; version=2');
    expect(await versionOf(tenant, first.id)).toBe(2);
    // At another process, which this one has not heard of.
    const store = app.get(AgentCatalogStore, { strict: false });
    const agent = await store.find(tenant.id, 'mine');
    if (!agent) throw new Error('The agent is gone');
    const version = { definition: agent.definition, by: 'other' };
    await store.setNext(
      { tenantId: tenant.id, id: agent.id, share: 0, failures: 5, version },
      PLATFORM_ACTOR,
    );
    expect(await versionOf(tenant, (await send(tenant, 'next; version=3')).id)).toBe(3);
    const late = await send(tenant, 'next; version=2');
    expect(late).toMatchObject({ status: 409, id: undefined });
    expect(late.error).toContain('version 3 of the agent mine has the label next, not version 2');
    expect((await send(tenant, 'next; version=three')).error).toContain('next; version=<number>');
  });
});
