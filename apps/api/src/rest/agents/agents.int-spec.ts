import { AgentCatalogStore, WorkerStore, PLATFORM_ACTOR } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { app, ECHO, sql, Tenant } from './catalog-api.fixture.js';

describe('an agent of a tenant', () => {
  it('is made, shown, listed, called and deleted', async () => {
    const tenant = await Tenant.create();
    const made = await tenant.ask('POST', '', ECHO);
    expect(made).toMatchObject({
      status: 201,
      etag: expect.stringMatching(/^"[\da-f-]{36}\.1"$/) as string,
      json: {
        outcome: 'created',
        dry_run: false,
        agent: {
          slug: 'second-echo',
          origin: 'catalog',
          enabled: true,
          version: 1,
          definition: { ...ECHO, version: '1.0.0' },
        },
      },
    });
    for (const name of ['second-echo', made.json.agent.id as string]) {
      const shown = await tenant.ask('GET', `/${name}`);
      expect(shown).toMatchObject({ status: 200, etag: made.etag, json: made.json.agent });
    }
    expect((await tenant.send('second-echo')).json).not.toHaveProperty('error');
    const first = await tenant.ask('GET', '?limit=2');
    const second = await tenant.ask('GET', `?limit=2&cursor=${String(first.json.next_cursor)}`);
    const slugs = [first, second].map(({ json }) =>
      (json.agents as { slug: string }[]).map(({ slug }) => slug),
    );
    expect(slugs).toEqual([['echo', 'index'], ['second-echo']]);
    expect(second.json.next_cursor).toBeNull();
    expect(await tenant.ask('DELETE', '/second-echo')).toMatchObject({ status: 204, text: '' });
    expect((await tenant.ask('GET', '/second-echo')).status).toBe(404);
    expect(await tenant.send('second-echo')).toMatchObject({
      status: 404,
      json: { error: { code: -32001 } },
    });
    expect((await tenant.ask('POST', '', { ...ECHO, slug: 'second-echo' })).status).toBe(201);
  });

  it('is accepted without the secrets that it needs, and the answer names them', async () => {
    const tenant = await Tenant.create();
    const of = (model: string, config: object = {}) => ({
      ...ECHO,
      runtime: 'llm',
      config: { model, prompt: 'p', ...config },
    });
    const warnings = async (body: object) => (await tenant.ask('POST', '?dryRun=true', body)).json.warnings;
    const missing = (field: string, name: string) => [
      { field, description: `there is no secret "${name}": set it before the agent runs` },
    ];
    expect(await warnings(of('openai/m'))).toEqual(missing('config.model', 'openai'));
    expect(await warnings(of('openai/m', { key: 'mine' }))).toEqual(missing('config.key', 'mine'));
    // It may need none.
    const local = of('openai-compatible/m', { baseUrl: 'https://models.example/v1' });
    expect(await warnings(local)).toBeUndefined();
    await tenant.ask('PUT', '/keyless', of('openai/m', { key: 'mine' }));
    expect((await tenant.ask('GET', '/keyless')).json.missing_secrets).toEqual([
      { name: 'mine', origins: ['https://api.openai.com'] },
    ]);
    await tenant.ask('PUT', '/local', local);
    expect((await tenant.ask('GET', '/local')).json).not.toHaveProperty('missing_secrets');
  });

  it('is replaced whole by PUT, and changed in part by PATCH; what is the same writes nothing', async () => {
    const tenant = await Tenant.create();
    const document = {
      ...ECHO,
      skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'] }],
      iconUrl: 'https://i.example/',
    };
    expect(await tenant.ask('PUT', '/mine', document)).toMatchObject({
      status: 201,
      json: { outcome: 'created' },
    });
    expect(await tenant.ask('PUT', '/mine', document)).toMatchObject({
      status: 200,
      json: { outcome: 'unchanged', agent: { version: 1 } },
    });
    const patched = await tenant.ask(
      'PATCH',
      '/mine',
      { description: 'New', iconUrl: null },
      { 'content-type': 'application/merge-patch+json' },
    );
    expect(patched).toMatchObject({ status: 200, json: { outcome: 'updated', agent: { version: 2 } } });
    expect(patched.json.agent.definition).toEqual({
      name: 'Second echo',
      description: 'New',
      version: '1.0.0',
      runtime: 'echo',
      skills: document.skills,
    });
    const put = await tenant.ask('PUT', '/mine', { ...ECHO, slug: 'mine' });
    expect(put.json.agent).toMatchObject({ version: 3 });
    expect(put.json.agent.definition).not.toHaveProperty('skills');
  });

  it('is accepted without tags, and a warning names where they are missing', async () => {
    const tenant = await Tenant.create();
    const skill = { id: 's', name: 'S', description: 'd' };
    const tagged = { ...skill, id: 't', tags: ['t'] };
    const written = await tenant.ask('PUT', '/mine', {
      ...ECHO,
      skills: [tagged, skill],
      extended: { skills: [skill] },
    });
    expect(written).toMatchObject({ status: 201 });
    const description = 'is empty: name at least one word that finds the skill';
    expect(written.json.hints).toEqual([
      { field: 'skills[1].tags', description },
      { field: 'extended.skills[0].tags', description },
    ]);
    const whole = await tenant.ask('PUT', '/mine', { ...ECHO, skills: [tagged] });
    expect(whole.json).not.toHaveProperty('hints');
  });

  it('has versions, each with its time and its author, and goes back to any of them', async () => {
    const tenant = await Tenant.create();
    await tenant.ask('PUT', '/mine', ECHO);
    await tenant.ask('PATCH', '/mine', { description: 'Two' });
    await tenant.ask('PATCH', '/mine', { enabled: false });
    const { json } = await tenant.ask('GET', '/mine/versions?limit=2');
    expect(json).toMatchObject({
      versions: [
        { version: 3, enabled: false, created_by: expect.stringMatching(/^token:/) as string },
        { version: 2 },
      ],
      next_cursor: '2',
    });
    expect((await tenant.ask('GET', '/mine/versions?cursor=2')).json).toMatchObject({
      versions: [{ version: 1, enabled: true }],
      next_cursor: null,
    });
    expect((await tenant.ask('GET', '/mine/versions/1')).json).toMatchObject({ definition: ECHO });
    expect(await tenant.ask('POST', '/mine/versions/1/restore')).toMatchObject({
      status: 200,
      json: { outcome: 'updated', agent: { version: 4, enabled: false, definition: ECHO } },
    });
    for (const path of ['/mine/versions/9', '/mine/versions/9/restore']) {
      expect((await tenant.ask(path.endsWith('e') ? 'POST' : 'GET', path)).status).toBe(404);
    }
    expect((await tenant.ask('GET', '/mine/versions/x')).status).toBe(400);
  });

  it('has versions whose contents are erased, such as a token in a header', async () => {
    const tenant = await Tenant.create();
    const remote = { card: 'https://crm.example', headers: { Authorization: 'Bearer hunter2' } };
    const agent = { name: 'Far', description: 'Far', runtime: 'remote-a2a' };
    await tenant.ask('PUT', '/far', { ...agent, config: remote });
    const early = await tenant.ask('DELETE', '/far/versions/1');
    expect([early.status, early.text]).toEqual([409, expect.stringContaining('change the agent first')]);
    await tenant.ask('PUT', '/far', { ...agent, config: { card: 'https://crm.example' } });
    const reader = await tenant.with('agents:read');
    expect((await reader.ask('DELETE', '/far/versions/1')).status).toBe(403);
    for (let i = 0; i < 2; i++) expect((await tenant.ask('DELETE', '/far/versions/1')).status).toBe(204);
    const list = await tenant.ask('GET', '/far/versions');
    expect(list.json).toMatchObject({
      versions: [
        { version: 2, erased_at: null },
        { version: 1, erased_at: expect.any(String) as string },
      ],
    });
    const shown = await tenant.ask('GET', '/far/versions/1');
    expect(shown.json).toMatchObject({ version: 1, definition: null });
    const restored = await tenant.ask('POST', '/far/versions/1/restore');
    expect([restored.status, restored.text]).toEqual([409, expect.stringContaining('was erased')]);
    const { rows } = await sql(`SELECT v::text FROM agent_versions v UNION SELECT a::text FROM agents a`);
    expect(JSON.stringify(rows)).not.toContain('hunter2');
    expect((await tenant.ask('DELETE', '/far/versions/9')).status).toBe(404);
    expect((await tenant.ask('GET', '/far')).json).toMatchObject({ version: 2 });
  });

  it('has versions that no longer show a text in a header or an environment when a later one is there', async () => {
    const tenant = await Tenant.create();
    const agent = { name: 'Far', description: 'Far' };
    const card = 'https://crm.example';
    const mcp = [
      {
        name: 'crm',
        url: 'https://crm.example/mcp',
        headers: { 'X-Key': 'hunter2', Other: { secret: 'crm' } },
      },
    ];
    const first = {
      far: {
        ...agent,
        runtime: 'remote-a2a',
        config: { card, headers: { Authorization: 'Bearer hunter2' } },
      },
      near: { ...agent, runtime: 'llm', config: { model: 'openai/gpt-5-mini', tools: { mcp } } },
    };
    for (const [slug, body] of Object.entries(first)) {
      expect((await tenant.ask('PUT', `/${slug}`, body)).status).toBe(201);
      // The newest version shows what its readers could read anyway.
      expect((await tenant.ask('GET', `/${slug}/versions/1`)).text).toContain('hunter2');
      expect((await tenant.ask('PATCH', `/${slug}`, { description: 'Later' })).status).toBe(200);
      const shown = await tenant.ask('GET', `/${slug}/versions/1`);
      expect(shown.text).not.toContain('hunter2');
      expect(shown.text).toContain('(hidden)');
      // Restoring brings back what it was.
      expect((await tenant.ask('POST', `/${slug}/versions/1/restore`)).status).toBe(200);
      expect((await tenant.ask('GET', `/${slug}`)).text).toContain('hunter2');
    }
    expect((await tenant.ask('GET', '/near/versions/1')).text).toContain('"secret":"crm"');
  });

  it('is not overwritten by who has seen an older version', async () => {
    const tenant = await Tenant.create();
    const { etag } = await tenant.ask('PUT', '/mine', ECHO, { 'if-none-match': '*' });
    const first = await tenant.ask('PATCH', '/mine', { description: 'Mine' }, { 'if-match': etag });
    expect(first.status).toBe(200);
    for (const [method, body] of [
      ['PATCH', { description: 'Theirs' }],
      ['PUT', ECHO],
      ['DELETE', undefined],
    ] as const) {
      const late = await tenant.ask(method, '/mine', body, { 'if-match': etag });
      expect([late.status, late.json.error.message]).toEqual([
        412,
        expect.stringMatching(/"mine" is now at version 2: read it again/) as string,
      ]);
    }
    expect((await tenant.ask('PUT', '/mine', ECHO, { 'if-none-match': '*' })).status).toBe(412);
    expect((await tenant.ask('PUT', '/none', ECHO, { 'if-match': '*' })).status).toBe(412);
    expect((await tenant.ask('GET', '/mine')).json).toMatchObject({
      version: 2,
      definition: { description: 'Mine' },
    });
    expect((await tenant.ask('DELETE', '/mine', undefined, { 'if-match': first.etag })).status).toBe(204);
  });

  it('keeps every part of it when many change parts at the same time', async () => {
    const tenant = await Tenant.create();
    await tenant.ask('PUT', '/mine', ECHO);
    const patches = [
      { description: 'D' },
      { version: '2.0.0' },
      { iconUrl: 'https://i.example/' },
      { inputModes: ['text/plain'] },
    ];
    const answers = await Promise.all(patches.map((patch) => tenant.ask('PATCH', '/mine', patch)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const { json } = await tenant.ask('GET', '/mine');
    expect(json.definition).toMatchObject(Object.assign({}, ...patches) as object);
    expect(json.version).toBe(5);
  });

  it('is tried out without being written', async () => {
    const tenant = await Tenant.create();
    const tried = await tenant.ask('PUT', '/mine?dryRun=true', ECHO);
    expect(tried).toMatchObject({
      status: 200,
      etag: '',
      json: { outcome: 'created', dry_run: true, agent: { slug: 'mine' } },
    });
    expect((await tenant.ask('GET', '/mine')).status).toBe(404);
    expect((await tenant.ask('POST', '?dryRun=true', { ...ECHO, runtime: 'x' })).status).toBe(400);
    await tenant.ask('PUT', '/mine', ECHO);
    expect((await tenant.ask('PATCH', '/mine?dryRun=true', { description: 'New' })).json).toMatchObject({
      outcome: 'updated',
      agent: { version: 2, definition: { description: 'New' } },
    });
    expect((await tenant.ask('GET', '/mine')).json).toMatchObject({ version: 1 });
    expect((await tenant.ask('PUT', '/mine?dryRun=maybe', ECHO)).status).toBe(400);
  });

  it('can be disabled when its runtime has come to ask for other settings', async () => {
    const tenant = await Tenant.create();
    const definition = { ...ECHO, version: '1', config: { old: true }, skills: [], inputModes: [] };
    await app.get(AgentCatalogStore, { strict: false }).create(
      {
        tenantId: tenant.id,
        slug: 'old',
        enabled: true,
        by: 'operator',
        definition: { ...definition, outputModes: [], extensions: [] },
      },
      PLATFORM_ACTOR,
    );
    expect((await tenant.ask('PATCH', '/old', { enabled: false })).json).toMatchObject({
      outcome: 'updated',
    });
    const changed = await tenant.ask('PATCH', '/old', { description: 'x' });
    expect([changed.status, changed.text]).toEqual([400, expect.stringContaining('config.old: ')]);
  });

  it('takes no messages while it is disabled, with an error in every version', async () => {
    const tenant = await Tenant.create();
    await tenant.ask('PUT', '/mine', { ...ECHO, enabled: false });
    for (const version of ['1.0', '0.3'] as const) {
      expect((await tenant.send('mine', version)).json.error).toMatchObject({
        code: -32004,
        message:
          'The agent "mine" is disabled and takes no messages: ask its tenant to enable it, or send to another',
      });
    }
    await tenant.ask('PATCH', '/mine', { enabled: true });
    expect((await tenant.send('mine')).json).not.toHaveProperty('error');
  });

  it('is sent to every process', async () => {
    const tenant = await Tenant.create();
    const received: unknown[] = [];
    let news = (): void => undefined;
    const stop = await app.get(Messaging, { strict: false }).subscribeControl((message) => {
      if ('tenantId' in message && message.tenantId === tenant.id) received.push(message);
      news();
    });
    await tenant.ask('PUT', '/mine?dryRun=true', ECHO);
    await tenant.ask('PUT', '/mine', ECHO);
    while (received.length === 0) await new Promise<void>((resolve) => (news = resolve));
    stop();
    expect(received).toEqual([{ type: 'catalog-changed', tenantId: tenant.id }]);
  });
});

describe('agents in code that workers could not load', () => {
  it('are listed for tenants that could use them, and only for who writes agents, while the worker lives', async () => {
    const [tenant, other] = [await Tenant.create(), await Tenant.create()];
    const workers = app.get(WorkerStore, { strict: false });
    const failure = { slug: 'mine', file: 'mine/index.mjs', line: 3, reason: 'boom', tenants: [tenant.slug] };
    const ofAll = { ...failure, slug: 'all', tenants: null, line: null };
    const failures = [failure, { ...failure, slug: 'hidden', tenants: [] }, ofAll];
    for (const id of ['w-1', 'w-2']) {
      await workers.reportFailures({ id, host: 'w', pid: 7, concurrency: 4 }, failures);
    }
    const seen = async (asker: Tenant, query = '') => (await asker.ask('GET', query)).json.load_failures;
    const shown = { agent: 'mine', file: 'mine/index.mjs', line: 3, reason: 'boom' };
    const shownToAll = { ...shown, agent: 'all', line: null };
    expect(await seen(tenant)).toEqual([shownToAll, shown]);
    expect(await seen(other)).toEqual([shownToAll]);
    expect(await seen(await tenant.with('agents:write'))).toEqual([shownToAll, shown]);
    expect(await seen(await tenant.with('agents:read'))).toBeUndefined();
    expect(await seen(await tenant.only(['mine'], 'agents:write'))).toEqual([shown]);
    expect(await seen(tenant, '?cursor=ZWNobw')).toBeUndefined();
    await sql(`UPDATE workers SET seen_at = now() - interval '1 day' WHERE id = 'w-1'`);
    expect(await seen(tenant)).toHaveLength(2);
    await workers.remove('w-2');
    expect(await seen(tenant)).toBeUndefined();
  });

  it('are listed with any text in their errors', async () => {
    const tenant = await Tenant.create();
    const workers = app.get(WorkerStore, { strict: false });
    // The cut at 1,000 characters is in the middle of the emoji.
    const reason = `nul \0, half \ud800, ${'x'.repeat(985)}😀`;
    const failure = { slug: 'mine', file: 'mine/index.mjs', line: 3, reason, tenants: [tenant.slug] };
    await workers.reportFailures({ id: 'w-3', host: 'w', pid: 7, concurrency: 4 }, [failure]);
    const { load_failures: shown } = (await tenant.ask('GET', '')).json;
    expect(shown).toEqual([
      expect.objectContaining({ reason: `nul , half \ufffd, ${'x'.repeat(985)}\ufffd` }),
    ]);
    await workers.remove('w-3');
  });
});
