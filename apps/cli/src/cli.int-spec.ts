import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentStore, CatalogClient, TenantStore, TokenStore } from '@baton/database';
import { baton, database, folder, json, listen, refusal } from './operator.fixture.js';

describe('tenants', () => {
  it('are created and listed', async () => {
    const { out } = await baton('tenants create acme');
    expect(out).toMatch(/^SLUG +DEFAULT AGENT .*\nacme +index /);
    expect(await json('tenants list')).toMatchObject([{ slug: 'acme', defaultAgent: 'index' }]);
  });

  it('get another default agent, but only one they have', async () => {
    await json('tenants create moved');
    expect(await json('tenants set moved --default-agent echo')).toMatchObject({ defaultAgent: 'echo' });
    expect(await refusal('tenants set moved --default-agent nobody')).toBe(
      'Tenant "moved" has no agent "nobody": npx baton agents list --tenant moved shows those it has.',
    );
  });

  it('are refused with a remedy: taken, unfit or missing slugs', async () => {
    await json('tenants create taken');
    expect(await refusal('tenants create taken')).toBe(
      "There is already a tenant 'taken': choose another slug.",
    );
    expect(await refusal('tenants create Not_A_Slug')).toMatch(
      /can not name a tenant: use 1 to 63 lower-case/,
    );
    expect(await refusal('tenants create')).toMatch(/^Missing required argument 'slug'\./);
    expect(await refusal('tenants set nobody --default-agent echo')).toBe(
      'There is no tenant "nobody": npx baton tenants list shows those there are.',
    );
  });
});

describe('tokens', () => {
  interface Token {
    id: string;
    token: string;
    prefix: string;
    state: string;
    scopes: string[];
    expiresAt: string | null;
  }

  beforeAll(() => json('tenants create holder'));

  it('are shown once, stored as a hash and listed without their secret', async () => {
    const issued = await json<Token>('tokens create --tenant holder --name ci --expires 30d');
    expect(issued).toMatchObject({ scopes: ['agents:call', 'tasks:read'], state: 'active', name: 'ci' });
    expect(Date.parse(issued.expiresAt ?? '') - Date.now()).toBeGreaterThan(29 * 86_400_000);
    const catalog = new CatalogClient(database.url);
    const hash = createHash('sha256').update(issued.token).digest('hex');
    expect(await new TokenStore(catalog).byHash(hash)).toMatchObject({ id: issued.id });
    await catalog.close();
    const list = await baton('tokens list --tenant holder --json');
    expect(list.out).toContain(issued.prefix);
    expect(list.out).not.toContain(issued.token);
  });

  it('print the secret alone on standard output, for scripts', async () => {
    const { out, err } = await baton('tokens create --tenant holder --scopes admin');
    expect(out).toMatch(/^baton_[\w-]{43}$/);
    expect(err).toMatch(/only time/);
  });

  it('are revoked by id or prefix, and every process is told', async () => {
    const byPrefix = await json<Token>('tokens create --tenant holder');
    const byId = await json<Token>('tokens create --tenant holder');
    const heard = await listen();
    await json(`tokens revoke --tenant holder ${byPrefix.prefix}`);
    expect(await json(`tokens revoke --tenant holder ${byId.id}`)).toMatchObject({ state: 'revoked' });
    expect(await heard(2)).toMatchObject([
      { type: 'token-revoked', tokenId: byPrefix.id },
      { type: 'token-revoked', tokenId: byId.id },
    ]);
  });

  it('are refused with a remedy: unknown tenant, scope, time or token', async () => {
    expect(await refusal('tokens list --tenant nobody')).toMatch(/^There is no tenant "nobody": /);
    expect(await refusal('tokens create')).toMatch(/^Required option '--tenant <slug>' not specified\./);
    expect(await refusal('tokens create --tenant holder --scopes root')).toBe(
      '--scopes: there is no scope "root": choose from agents:call, tasks:read, admin.',
    );
    expect(await refusal('tokens create --tenant holder --expires soon')).toMatch(
      /^--expires: "soon" is neither/,
    );
    const { token } = await json<Token>('tokens create --tenant holder');
    const message = await refusal(`tokens revoke --tenant holder ${token}`);
    expect(message).toMatch(/^Tenant "holder" has no such token: /);
    expect(message).not.toContain(token);
  });

  it("of another tenant can't be revoked", async () => {
    await json('tenants create stranger');
    const { id } = await json<Token>('tokens create --tenant holder');
    await refusal(`tokens revoke --tenant stranger ${id}`);
    const tokens = await json<Token[]>('tokens list --tenant holder');
    expect(tokens.find((token) => token.id === id)).toMatchObject({ state: 'active' });
  });
});

describe('agents', () => {
  const file = (text: string): string => {
    const path = join(folder, 'agent.yaml');
    writeFileSync(path, text);
    return path;
  };
  const ECHO = 'name: Second echo\ndescription: Says it again\nruntime: echo\n';

  beforeAll(() => json('tenants create maker'));

  it('are created from a file, listed beside the built-ins and removed; every process is told', async () => {
    const heard = await listen();
    const agent = await json(`agents create --tenant maker --file ${file(ECHO)}`);
    expect(agent).toMatchObject({ slug: 'second-echo', origin: 'catalog', runtime: 'echo' });
    const slugs = (await json<{ slug: string }[]>('agents list --tenant maker')).map(({ slug }) => slug);
    expect(slugs).toEqual(['echo', 'index', 'second-echo']);
    await json('agents remove --tenant maker second-echo');
    expect(await json('agents list --tenant maker')).toHaveLength(2);
    expect(await heard(2)).toMatchObject([{ type: 'catalog-changed' }, { type: 'catalog-changed' }]);
  });

  it('may be closed to the callers of other systems', async () => {
    await json(`agents create --tenant maker --file ${file(`${ECHO}a2aEnabled: false\n`)} --slug closed`);
    const catalog = new CatalogClient(database.url);
    const { id } = (await new TenantStore(catalog).bySlug('maker'))!;
    expect((await new AgentStore(catalog).find(id, 'closed'))?.definition.a2aEnabled).toBe(false);
    await catalog.close();
    await json('agents remove --tenant maker closed');
    const wrong = file(`${ECHO}a2aEnabled: perhaps\n`);
    expect(await refusal(`agents create --tenant maker --file ${wrong}`)).toMatch(/a2aEnabled: /);
  });

  it.each([
    ['name: A\ndescription: b\nruntime: abacus\n', /there is no runtime "abacus"; there are echo, /],
    [`${ECHO}config: {loud: true}\n`, /config\.loud: the echo runtime takes no settings\.$/],
    [`${ECHO}skills: [{id: x}]\n`, /skills\[0\]\.name: /],
    ['name: [A\n', /at line 2, column 1/],
    ['name: A\ndescription: b\nruntime: executor\n', /put its folder into BATON_AGENTS_DIR/],
    [`${ECHO}tenants: [other]\n`, /tenants: is for installed agents/],
  ])('are refused with the file and the field: %j', async (text, reason) => {
    const path = file(text);
    const message = await refusal(`agents create --tenant maker --file ${path}`);
    expect(message).toMatch(reason);
    expect(message.startsWith(`${path}: `)).toBe(true);
  });

  it('are kept while they are built in or the default', async () => {
    expect(await refusal('agents remove --tenant maker echo')).toMatch(/is built in/);
    await json(`agents create --tenant maker --file ${file(ECHO)} --slug front`);
    await json('tenants set maker --default-agent front');
    expect(await refusal('agents remove --tenant maker front')).toMatch(/set another first/);
  });
});

describe('the database', () => {
  it('is found in the folder of a running `npm start`', async () => {
    expect(await refusal('tenants list', {})).toBe(
      'No database is known: set DATABASE_URL, or start Baton with `npm start` in this folder.',
    );
    const runtime = join(folder, 'runtime.json');
    writeFileSync(runtime, JSON.stringify({ databaseUrl: database.url, redisUrl: null }));
    expect(await baton('tenants list', {})).toMatchObject({ code: 0 });
    writeFileSync(runtime, '{');
    expect(await refusal('tenants list', {})).toMatch(/runtime\.json is broken: start Baton again/);
    rmSync(runtime);
  });

  it('that does not answer, does not exist or is not migrated is named with the remedy', async () => {
    const url = (change: (url: URL) => void): Record<string, string> => {
      const changed = new URL(database.url);
      change(changed);
      return { DATABASE_URL: changed.toString() };
    };
    expect(
      await refusal(
        'tenants list',
        url((to) => (to.port = '1')),
      ),
    ).toMatch(
      /^Postgres is not available \(.*127\.0\.0\.1:1\): check that it runs and that DATABASE_URL names it/,
    );
    expect(
      await refusal(
        'tenants list',
        url((to) => (to.pathname = '/nowhere')),
      ),
    ).toMatch(/does not exist: create it, then run npm run migrate\.$/);
    expect(
      await refusal(
        'tenants list',
        url((to) => (to.pathname = '/postgres')),
      ),
    ).toBe('The database is not migrated: run npm run migrate.');
  });
});
