import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { Message, Role, TaskState, textPart } from '@baton/a2a';
import {
  CatalogClient,
  Database,
  ScheduleStore,
  TaskStore,
  TenantStore,
  PLATFORM_ACTOR,
} from '@baton/database';
import {
  baton,
  database,
  folder,
  json,
  managementUrl,
  operator,
  ownMachine,
  refusal,
} from './operator.fixture.js';

describe('tenants', () => {
  it('are created and listed', async () => {
    const { out } = await baton('tenants create acme');
    expect(out).toMatch(/^SLUG +DEFAULT AGENT .*\nacme +index /);
    expect(await json('tenants list')).toMatchObject([{ slug: 'acme', defaultAgent: 'index' }]);
  });

  it('are compared by what they take', async () => {
    await json('tenants create compared');
    expect((await baton('tenants report --sort bytes --limit 1000')).out).toMatch(
      /^TENANT +SLOTS +WAITING RUNS +STORED BYTES [^]*\ncompared +0 +0 +not counted yet +0/,
    );
    expect(await json('tenants report --sort tenant')).toContainEqual(
      expect.objectContaining({ tenant: 'compared', runsInFlight: 0, inputTokens: 0 }),
    );
    expect((await baton('tenants report --csv --sort cost')).out).toMatch(
      /^tenant,runs_in_flight,[^]*\ncompared,0,0,/,
    );
    expect(await baton('tenants report --sort colour')).toMatchObject({ code: 2 });
  });

  it('get another default agent, but only one they have', async () => {
    await json('tenants create moved');
    expect(await json('tenants set moved --default-agent echo')).toMatchObject({ defaultAgent: 'echo' });
    expect(await refusal('tenants set moved --default-agent nobody')).toBe(
      'Tenant "moved" has no agent "nobody": npx baton agents list --tenant moved shows its agents.',
    );
  });

  it('get lists of where their agents may call', async () => {
    await json('tenants create fenced');
    expect((await baton('tenants egress fenced')).out).toMatch(/^allow +all\ndeny +none$/);
    const set = 'tenants egress fenced --allow *.Example.com 10.0.0.0/8 --deny evil.example.com,0x7f.1';
    expect(await json(set)).toEqual({
      allow: ['*.example.com', '10.0.0.0/8'],
      deny: ['evil.example.com', '127.0.0.1'],
    });
    expect(await refusal('tenants egress fenced --deny a.example https://b.example')).toMatch(
      /^--deny: "https:\/\/b\.example" is no destination: use host names/,
    );
    expect(await refusal('tenants egress nobody')).toMatch(/^There is no tenant "nobody"/);
    expect(await json('tenants egress fenced --allow all')).toMatchObject({
      allow: [],
      deny: ['evil.example.com', '127.0.0.1'],
    });
  });

  it('get a model for their index, none, or that of the environment', async () => {
    await json('tenants create routed');
    const set = (line: string) => json(`tenants set routed --index-model ${line}`);
    const url = 'http://ollama:11434/v1';
    expect(await set(`openai-compatible/llama --index-model-url ${url}`)).toMatchObject({
      indexModel: 'openai-compatible/llama',
      indexModelUrl: url,
      defaultAgent: 'index',
    });
    expect(await set('none')).toMatchObject({ indexModel: 'none', indexModelUrl: null });
    expect(await set('default')).toMatchObject({ indexModel: null, indexModelUrl: null });
    expect(await refusal('tenants set routed --index-model gpt-5')).toMatch(
      /^--index-model must be provider\/model, and the provider one of openai, /,
    );
    expect(await refusal('tenants set routed --index-model openai-compatible/llama')).toMatch(
      /^--index-model-url is needed with an openai-compatible model/,
    );
    expect(await refusal('tenants set routed')).toBe(
      'Name what to change: --default-agent <agent> or --index-model <provider/model>.',
    );
  });

  it('are suspended with a reason, resumed, and deleted for good', async () => {
    const { id } = await json<{ id: string }>('tenants create debtor');
    expect(await baton('tenants suspend debtor --reason unpaid --stop')).toEqual({
      code: 0,
      err: '',
      out: 'Tenant debtor is suspended; canceled tasks: 0.',
    });
    expect((await baton('tenants list')).out).toMatch(
      /^debtor +index .* suspended +[-\da-f]+ +not counted yet$/m,
    );
    expect(await json('tenants resume debtor')).toMatchObject({ id, suspendedAt: null });
    expect(await refusal('tenants delete debtor')).toBe(
      'This deletes all tokens, agents, secrets, schedules and tasks of "debtor" permanently: add --yes.',
    );
    await json('tokens create --tenant debtor --name ci');
    expect(await baton('tenants delete debtor --yes')).toEqual({
      code: 0,
      err: 'api_tokens: 1 rows deleted\naudit_records: 4 rows deleted',
      out: `Tenant debtor (${id}) is deleted: 5 rows, 0 running tasks canceled.`,
    });
    for (const command of ['suspend debtor', 'resume debtor', 'delete debtor --yes']) {
      expect(await refusal(`tenants ${command}`)).toBe(
        'There is no tenant "debtor": npx baton tenants list shows all tenants.',
      );
    }
    expect(await refusal(`tenants suspend debtor --reason ${'x'.repeat(201)}`)).toMatch(/^--reason must be/);
  });

  it('are refused with a remedy: taken, unfit or missing slugs', async () => {
    await json('tenants create taken');
    expect(await refusal('tenants create taken')).toBe(
      "The tenant 'taken' already exists: choose another slug.",
    );
    expect(await refusal('tenants create Not_A_Slug')).toMatch(
      /cannot name a tenant: use 1 to 63 lower-case/,
    );
    expect(await refusal('tenants create')).toMatch(/^Missing required argument 'slug'\./);
    expect(await refusal('tenants set nobody --default-agent echo')).toBe(
      'There is no tenant "nobody": npx baton tenants list shows all tenants.',
    );
  });
});

describe('the limits of a tenant', () => {
  type Shown = Record<string, { value: number | null; from: string }>;

  beforeAll(() => json('tenants create limited'));

  const limits = (line: string) => json<Shown>(`tenants limits limited${line}`);

  it('are shown with where each comes from', async () => {
    expect(await limits('')).toMatchObject({
      openStreams: { value: 1_000, from: 'default' },
      tasksWaiting: { value: 10_000, from: 'default' },
      weight: { value: 1, from: 'default' },
    });
    expect((await baton('tenants limits limited')).out).toMatch(
      /^LIMIT +VALUE +FROM +WHAT\nrequests-per-second +200 +default +requests per second\nruns-at-once +none +none [^]*\nopen-streams +1000 +default /,
    );
  });

  it('say that what a tenant has stored is still being counted', async () => {
    const { id } = await json<{ id: string }>('tenants create large');
    await json('tenants limits large --stored-bytes 5000');
    expect((await baton('tenants limits large')).out).not.toContain('being counted');
    const client = new CatalogClient(database.url);
    const usage = { tenantId: id, storedBytes: 0, isCounted: false, countingTasks: 4_000 };
    await client.prisma.tenantUsage.create({ data: usage });
    await client.close();
    expect((await baton('tenants limits large')).out).toMatch(
      /stored-bytes +5000 +set +[^\n]+: being counted \(4000 tasks so far\)/,
    );
    expect(await json('tenants limits large')).toMatchObject({ storedBytes: { countedTasks: 4_000 } });
  });

  it('are set and given back, several at once', async () => {
    const line =
      ' --requests-per-second 10 --open-streams none --weight 3 --retention-days 0.5 --tasks-waiting 9';
    expect(await limits(line)).toMatchObject({
      requestsPerSecond: { value: 10, from: 'set' },
      openStreams: { value: null, from: 'set' },
      weight: { value: 3, from: 'set' },
      retentionDays: { value: 0.5, from: 'set' },
    });
    expect(await limits(' --runs-at-once 2147483647 --default tasks-waiting weight')).toMatchObject({
      requestsPerSecond: { value: 10, from: 'set' },
      runsAtOnce: { value: 2_147_483_647, from: 'set' },
      tasksWaiting: { value: 10_000, from: 'default' },
      weight: { value: 1, from: 'default' },
    });
  });

  it('are refused with a remedy, and then nothing is changed', async () => {
    const before = await limits('');
    const refused = (line: string) => refusal(`tenants limits limited --events-per-run 5 ${line}`);
    for (const text of ['0', '-1', '1.5', 'many', '1000001', '1e3']) {
      expect(await refused(`--requests-per-second ${text}`)).toBe(
        `--requests-per-second: "${text}" is not a whole number from 1 to 1000000, or none.`,
      );
    }
    expect(await refused('--weight none')).toBe('--weight: "none" is not a whole number from 1 to 1000.');
    expect(await refused('--retention-days 0')).toMatch(/such as 30 or 0\.5, or none\.$/);
    expect(await refused('--default nonsense')).toMatch(
      /^--default: "nonsense" is not a limit: choose from requests-/,
    );
    expect(await refused('--default events-per-run')).toMatch(
      /^--events-per-run is set and also named by --default/,
    );
    expect(await refusal('tenants limits nobody --weight 2')).toMatch(/^There is no tenant "nobody"/);
    expect(await refusal('tenants limits nobody')).toMatch(/^There is no tenant "nobody"/);
    expect(await limits('')).toEqual(before);
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

  async function scheduleStore(slug: string) {
    const catalog = new CatalogClient(database.url);
    const { id: tenantId } = (await new TenantStore(catalog).bySlug(slug))!;
    await catalog.close();
    const tables = new Database({ url: database.url, poolSize: 1 });
    return { tenantId, store: new ScheduleStore(tables), close: () => tables.close() };
  }

  it('are shown once, and listed without their secret', async () => {
    const issued = await json<Token>('tokens create --tenant holder --name ci --expires 30d');
    expect(issued).toMatchObject({ scopes: ['agents:call'], agents: [], state: 'active', name: 'ci' });
    expect(Date.parse(issued.expiresAt ?? '') - Date.now()).toBeGreaterThan(29 * 86_400_000);
    const list = await baton('tokens list --tenant holder --json');
    expect(list.out).toContain(issued.prefix);
    expect(list.out).not.toContain(issued.token);
  });

  it('print the secret alone on standard output, for scripts', async () => {
    const { out, err } = await baton('tokens create --tenant holder --scopes admin');
    expect(out).toMatch(/^baton_[\w-]{43}$/);
    expect(err).toMatch(/only time/);
  });

  it('are revoked by id or prefix', async () => {
    for (const name of ['id', 'prefix'] as const) {
      const made = await json<Token>('tokens create --tenant holder');
      const revoked = await json(`tokens revoke --tenant holder ${made[name]}`);
      expect(revoked).toMatchObject({ id: made.id, state: 'revoked' });
    }
  });

  it('are refused with a remedy: unknown tenant, scope, time or token', async () => {
    expect(await refusal('tokens list --tenant nobody')).toMatch(/^There is no tenant "nobody": /);
    expect(await refusal('tokens create')).toMatch(/^No server is configured: give --url and --token, /);
    expect(await refusal('tokens create --tenant holder --scopes root')).toBe(
      '--scopes: there is no scope "root": choose from agents:call, tasks:read, tasks:write, tasks:approve, agents:read, agents:write, secrets:write, schedules:write, records:read, audit:read, admin.',
    );
    expect(await refusal('tokens create --tenant holder --expires soon')).toMatch(
      /^--expires: "soon" is neither/,
    );
    const { token } = await json<Token>('tokens create --tenant holder');
    const message = await refusal(`tokens revoke --tenant holder ${token}`);
    expect(message).toBe(
      'There is no such token: npx baton tokens list --tenant holder shows ids and prefixes.',
    );
    expect(message).not.toContain(token);
  });

  it('have rights besides scopes, which are shown', async () => {
    const { id } = await json<Token>(
      'tokens create --tenant holder --agents echo,index --requests-per-second 5 --scopes agents:call,tasks:read',
    );
    const shown = await json<Token>(`tokens show --tenant holder ${id}`);
    expect(shown).toMatchObject({
      agents: ['echo', 'index'],
      requestsPerSecond: 5,
      lastUsedAt: null,
      previousPrefix: null,
      running: { tasks: [], schedules: [], hasMore: false },
    });
    const { out } = await baton(`tokens show --tenant holder ${id}`);
    expect(out).toMatch(/^agents +echo, index\nrequests a second +5$/m);
    for (const [option, message] of [
      ['--agents Echo', '--agents: "Echo" is not the slug of an agent.'],
      ['--agents ,', '--agents: give 1 to 100 slugs, or leave it out for all agents.'],
      ['--requests-per-second 0', '--requests-per-second: "0" is not a whole number from 1 to 100000.'],
    ]) {
      expect(await refusal(`tokens create --tenant holder ${option}`)).toBe(message);
    }
  });

  it('get a new secret, beside which the one before is good for a while', async () => {
    const { id, prefix, token } = await json<Token>('tokens create --tenant holder --expires 30d');
    const rotated = await json<Token>(`tokens rotate --tenant holder ${prefix} --overlap 2h`);
    expect(rotated).toMatchObject({ id, previousPrefix: prefix, state: 'active' });
    expect(rotated.token).not.toBe(token);
    const { err } = await baton(`tokens rotate --tenant holder ${id} --overlap 0`);
    expect(err).toContain('The secret before is refused now.');
    expect(await refusal(`tokens rotate --tenant holder ${id} --overlap 31d`)).toMatch(
      /^--overlap: "31d" is/,
    );
    await json(`tokens revoke --tenant holder ${id}`);
    expect(await refusal(`tokens rotate --tenant holder ${id}`)).toBe(
      'The token was revoked: create another.',
    );
  });

  it('that are revoked leave their schedules, unless they are stopped', async () => {
    const { id } = await json<Token>('tokens create --tenant holder');
    const { tenantId, store, close } = await scheduleStore('holder');
    const message = Message.fromJSON({ messageId: 'm', parts: [{ text: 'hi' }] });
    const spec = {
      name: `of-${id.slice(0, 8)}`,
      agent: 'echo',
      message,
      cron: '@yearly',
      at: null,
      timeZone: 'UTC',
      ...({
        overlap: 'skip',
        missed: 'skip',
        context: 'new',
        startsAt: null,
        endsAt: null,
        maxCount: null,
      } as const),
      paused: false,
      nextAt: new Date(Date.now() + 86_400_000),
    };
    const schedule = { tenantId, id: randomUUID(), owner: `token:${id}`, ...spec };
    await store.create(schedule, PLATFORM_ACTOR);
    await store.create(
      { ...schedule, id: randomUUID(), name: 'of-another', owner: 'token:another' },
      PLATFORM_ACTOR,
    );
    const left = { running: { schedules: [{ name: spec.name, agent: 'echo' }] }, state: 'revoked' };
    expect(await json(`tokens revoke --tenant holder ${id}`)).toMatchObject(left);
    const { out, err } = await baton(`tokens revoke --tenant holder ${id}`);
    expect(out).toContain(`schedule ${spec.name}`);
    expect(err).toBe('These continue without the token. To stop them, run the command again with --stop.');
    expect(await json(`tokens revoke --tenant holder ${id} --stop`)).toMatchObject({
      running: { schedules: [] },
      canceledTasks: 0,
      pausedSchedules: 1,
    });
    expect((await store.find(tenantId, spec.name))?.paused).toBe(true);
    expect((await store.find(tenantId, 'of-another'))?.paused).toBe(false);
    await close();
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

  it('are created from a file, listed beside the built-ins and removed', async () => {
    const agent = await json(`agents create --tenant maker --file ${file(ECHO)}`);
    expect(agent).toMatchObject({ slug: 'second-echo', origin: 'catalog', runtime: 'echo' });
    const slugs = (await json<{ slug: string }[]>('agents list --tenant maker')).map(({ slug }) => slug);
    expect(slugs).toEqual(['echo', 'index', 'second-echo']);
    await json('agents remove --tenant maker second-echo');
    expect(await json('agents list --tenant maker')).toHaveLength(2);
  });

  it.each([
    ['name: A\ndescription: b\nruntime: abacus\n', /there is no runtime "abacus"; there are echo, /, 3],
    [`${ECHO}config: {loud: true}\n`, /config\.loud: the echo runtime takes no settings\.$/, 4],
    [`${ECHO}skills: [{id: x}]\n`, /skills\[0\]\.name: /, 4],
    ['name: [A\n', /must be sufficiently indented and end with a \]/, 2],
    ['name: A\ndescription: b\nruntime: executor\n', /put the folder of the agent into BATON_AGENTS_DIR/, 3],
    [`${ECHO}tenants: [other]\n`, /tenants: is for installed agents/, 4],
  ])('are refused with the file, the line and the field: %j', async (text, reason, line) => {
    const path = file(text);
    const message = await refusal(`agents create --tenant maker --file ${path}`);
    expect(message).toMatch(reason);
    expect(message).toContain(`${path}:${String(line)}: `);
    expect(message.startsWith(path)).toBe(true);
  });

  it('are kept while they are built in or the default', async () => {
    expect(await refusal('agents remove --tenant maker echo')).toMatch(/is built in/);
    await json(`agents create --tenant maker --file ${file(ECHO)} --slug front`);
    await json('tenants set maker --default-agent front');
    expect(await refusal('agents remove --tenant maker front')).toMatch(/set another first/);
  });
});

describe('the API of operators', () => {
  const runtime = (content: string): void => writeFileSync(join(folder, 'runtime.json'), content);

  it('is that of a running `npm start`, or of MANAGEMENT_PORT beside DATABASE_URL', async () => {
    expect(await refusal('tenants list', {})).toBe(
      'No server is configured: start Baton with `npm start` in this folder, or give --url and --token of a management port.',
    );
    expect(await refusal('tenants list', { DATABASE_URL: database.url })).toBe(
      'No server is configured: set MANAGEMENT_PORT as the API process has it, or give --url and --token of a management port.',
    );
    runtime(JSON.stringify({ databaseUrl: database.url, redisUrl: null, managementUrl }));
    expect(await baton('tenants list', {})).toMatchObject({ code: 0 });
    // The one of this folder is another Baton than that of DATABASE_URL.
    runtime(JSON.stringify({ databaseUrl: 'postgres://127.0.0.1:1/x', managementUrl: 'http://127.0.0.1:1' }));
    expect(await baton('tenants list')).toMatchObject({ code: 0 });
    runtime('{');
    expect(await refusal('tenants list', {})).toMatch(/runtime\.json is damaged: run `npm start` again/);
    rmSync(join(folder, 'runtime.json'));
  });

  it('is named with the remedy if it is away, or refuses the token', async () => {
    const away = { ...ownMachine(), MANAGEMENT_PORT: '1' };
    expect(await refusal('tenants list', away)).toMatch(/^http:\/\/127\.0\.0\.1:1 does not answer/);
    const named = { BATON_ADMIN_URL: managementUrl };
    expect(await refusal('tenants list', named)).toMatch(/^There is no token for http.*: give --token or/);
    expect(await refusal('tenants list --url nowhere', named)).toMatch(/^--url: "nowhere" is not an http/);
    const wrong = { ...named, BATON_OPERATOR_TOKEN: 'baton_operator_wrong' };
    expect(await refusal('tenants list', wrong)).toMatch(/refuses the token: /);
  });

  it('gets a token for one command from the database, which the audit log has with the user of the machine', async () => {
    const before = await json<{ id: string }[]>('audit --all');
    await json('tenants create traced');
    const known = new Set(before.map(({ id }) => id));
    const records = (await json<AuditRecord[]>('audit --all')).filter(({ id }) => !known.has(id));
    // Each of the two commands that follow the first has a token of its own.
    const [reading, change, making] = records;
    const name = `command line, ${userInfo().username}@${hostname()}`;
    const made = { action: 'operator-token.create', actor: { key: 'operator' }, source: 'command line' };
    for (const record of [reading, making]) expect(record).toMatchObject({ ...made, detail: { name } });
    expect(change).toMatchObject({
      action: 'tenant.create',
      actor: {
        key: `operator:${making!.target.name}`,
        name: expect.stringContaining(`${name} (baton_op`) as string,
      },
    });
    const { operator_tokens: tokens } = (await (
      await fetch(`${managementUrl}/v1/admin/operator-tokens`, {
        headers: { authorization: `Bearer ${operator}` },
      })
    ).json()) as { operator_tokens: { name: string }[] };
    expect(tokens.map((token) => token.name)).toEqual(['ops']);
  });
});

interface AuditRecord {
  id: string;
  actor: { key: string; name: string | null };
  target: { name: string };
}

describe('tokens of operators', () => {
  interface Token {
    id: string;
    token: string;
    prefix: string;
  }

  it('are made in the database, and are listed and revoked', async () => {
    const made = await json<Token>('operator-tokens create --name desk --role support --expires 30d');
    const env = { BATON_ADMIN_URL: managementUrl, BATON_OPERATOR_TOKEN: made.token };
    const listed = JSON.parse((await baton('operator-tokens list --json', env)).out) as object[];
    const { token: _, ...shown } = made;
    expect(listed).toEqual([
      { ...shown, state: 'active' },
      expect.objectContaining({ name: 'ops', expiresAt: null }),
    ]);
    const { out } = await baton(`operator-tokens revoke ${made.prefix}`);
    expect(out).toMatch(
      /^PREFIX +NAME +ROLE +EXPIRES +STATE +CREATED +ID\nbaton_operator_\S+ +desk +support +\d.* revoked /,
    );
    expect(await refusal('operator-tokens list', env)).toMatch(/refuses the token: /);
    expect(await refusal(`operator-tokens revoke ${made.token}`)).toBe(
      'There is no such token: npx baton operator-tokens list shows ids and prefixes.',
    );
  });

  it('name the database that does not answer, does not exist or is not migrated, with the remedy', async () => {
    const create = (change: (url: URL) => void): Promise<string> => {
      const changed = new URL(database.url);
      change(changed);
      return refusal('operator-tokens create', { DATABASE_URL: changed.toString() });
    };
    expect(await refusal('operator-tokens create', {})).toBe(
      'No database is configured: set DATABASE_URL, or start Baton with `npm start` in this folder.',
    );
    expect(await create((to) => (to.port = '1'))).toMatch(
      /^Postgres is not available \(.*127\.0\.0\.1:1\): check that it runs and that DATABASE_URL names it/,
    );
    expect(await create((to) => (to.pathname = '/nowhere'))).toMatch(
      /does not exist: create it, then run npm run migrate\.$/,
    );
    expect(await create((to) => (to.pathname = '/postgres'))).toBe(
      'The database is not migrated: run npm run migrate.',
    );
  });
});

describe('tasks', () => {
  it('are shown with the last error in the code of their agent, and without what drives a terminal', async () => {
    const { id: tenantId } = await json<{ id: string }>('tenants create authors');
    const own = new Database({ url: database.url, poolSize: 2 });
    try {
      const runId = await bury(own, tenantId, 'echo');
      const text = 'UPDATE runs SET error_detail = $2 WHERE id = $1 RETURNING task_id';
      const output = ['about to throw', 'red \u001b[31m'];
      const error = { attempt: 1, at: '2026-01-01T00:00:00Z', name: 'E', message: 'broken', output };
      const [row] = await own.systemQuery<{ task_id: string }>({ text }, [runId, JSON.stringify(error)]);
      const show = `tasks show ${row!.task_id} --tenant authors`;
      const { code, out } = await baton(show);
      expect(code).toBe(0);
      expect(out).toMatch(/state +submitted/);
      expect(out).toMatch(/\nbroken\n\nIts console:\nabout to throw\nred \[31m$/);
      expect(JSON.parse((await baton(`${show} --json`)).out)).toMatchObject({ agentId: 'echo', error });
    } finally {
      await own.close();
    }
    expect(await refusal(`tasks show ${randomUUID()} --tenant authors`)).toMatch(/has no task/);
  });
});

it('the help names every command of every group', async () => {
  const { out } = await baton('--help');
  const entries = [...out.split('Commands:\n')[1]!.matchAll(/^  ([a-z-]+) +(.*(?:\n {5,}.*)*)/gm)];
  const groups = entries.filter(([, , summary]) => summary!.includes(': '));
  expect(groups.length).toBeGreaterThanOrEqual(9);
  for (const [, group, summary] of groups) {
    const named = summary!.replaceAll(/\s+/g, ' ').split(': ')[1]!.split(', ');
    const { out: help } = await baton(`${group!} --help`);
    const commands = [...help.split('Commands:\n')[1]!.matchAll(/^  ([a-z-]+)/gm)].map(([, name]) => name!);
    expect([group, ...named, 'help'].sort()).toEqual([group, ...commands].sort());
  }
});

describe('dead letters', () => {
  it('of a tenant are redelivered all at once, once', async () => {
    const { id: tenantId } = await json<{ id: string }>('tenants create buried');
    await json('tenants create untouched');
    const own = new Database({ url: database.url, poolSize: 2 });
    const runIds: string[] = [];
    try {
      for (let i = 0; i < 5; i++) runIds.push(await bury(own, tenantId, i === 4 ? 'gone' : 'echo'));
    } finally {
      await own.close();
    }
    const all = 'dead-letters redeliver --all --tenant buried';
    const { code, out, err } = await baton(all);
    expect([code, out.split('\n').length]).toEqual([0, 4]);
    expect(err).toBe(`The agent of run ${runIds[4]!} no longer exists: the run cannot be redelivered.`);
    const listed = await json<{ redeliveredAt: string | null }[]>('dead-letters list --tenant buried');
    expect(listed.map(({ redeliveredAt }) => redeliveredAt === null).toSorted()).toEqual([
      false,
      false,
      false,
      false,
      true,
    ]);
    expect((await baton(`${all} --json`)).out).toBe('[]');
    expect(JSON.parse((await baton(`${all} --again --json`)).out)).toHaveLength(4);
    expect(await json('dead-letters redeliver --all --tenant untouched')).toEqual([]);
  });
});

/** A run of an agent that used up its attempts, at the same time as all others; its id. */
async function bury(own: Database, tenantId: string, agentId: string): Promise<string> {
  const [taskId, runId] = [randomUUID(), randomUUID()];
  const timestamp = new Date().toISOString();
  const message = {
    messageId: randomUUID(),
    contextId: 'c',
    taskId,
    role: Role.ROLE_USER,
    parts: [textPart('hi')],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  await new TaskStore(own).create({
    tenantId,
    agentId,
    runId,
    extensions: [],
    task: {
      id: taskId,
      contextId: 'c',
      artifacts: [],
      history: [message],
      metadata: undefined,
      status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp },
    },
  });
  const text = `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts, died_at)
    VALUES ('${tenantId}', '${runId}', '${taskId}', '${agentId}', 'died', 3, '2026-01-01')`;
  await own.systemQuery({ text }, []);
  return runId;
}
