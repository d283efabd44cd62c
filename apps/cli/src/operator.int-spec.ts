import { TENANT_SCOPES } from '@baton/a2a';
import { Database, WorkerStore, PLATFORM_ACTOR } from '@baton/database';
import { TokenService } from '@baton/identity';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Json } from '../../api/src/admin/admin-api.fixture.js';
import { exitCodeOf } from './exit-codes.fixture.js';
import { app, managementUrl, operator, url } from './operator.fixture.js';
import { run } from './program.js';

// Another machine than that of the API: it has no database, and the token of an operator.
describe('npx baton with --url needs no database', () => {
  /** What an operator without DATABASE_URL sees. */
  async function baton(...args: string[]) {
    const [out, err]: [string[], string[]] = [[], []];
    const terminal = {
      out: (text: string) => void out.push(text),
      err: (text: string) => void err.push(text),
    };
    const home = mkdtempSync(join(tmpdir(), 'baton-remote-'));
    const source = { BATON_HOME: home, BATON_ADMIN_URL: managementUrl, BATON_OPERATOR_TOKEN: operator };
    const code = await run(args, { source, terminal, stdin: () => Readable.from([]) });
    return { code, out: out.join('\n'), err: err.join('\n') };
  }
  const must = async (...args: string[]): Promise<Json> => {
    const { code, out, err } = await baton(...args, '--json');
    expect([code, err]).toEqual([0, '']);
    return JSON.parse(out) as Json;
  };
  const refusal = async (...args: string[]): Promise<string> => {
    const { code, err } = await baton(...args);
    expect([code, err]).toEqual([exitCodeOf(err), err]);
    return err;
  };

  it('for hosts', async () => {
    const { id: tenantId } = await must('tenants', 'create', 'remote-hosts');
    const bind = ['hosts', 'bind', '--tenant', 'remote-hosts', '--agent'];
    const bound = { host: 'xn--bcher-kva.example', tenantId, tenant: 'remote-hosts', agent: 'echo' };
    expect(await must(...bind, 'echo', 'Bücher.example:443')).toEqual({ ...bound, public: false });
    expect(await must('hosts', 'list', '--tenant', 'remote-hosts')).toEqual([{ ...bound, public: false }]);
    expect((await baton(...bind, 'echo', 'open.example', '--public')).out).toMatch(
      /for all callers, also without a token\.$/,
    );
    expect(await must('hosts', 'unbind', 'open.example')).toMatchObject({ public: true });
    expect((await baton('hosts', 'list')).out).toMatch(/\nxn--bcher-kva\.example +remote-hosts +echo/);
    expect(await refusal(...bind, 'nobody', 'x.example')).toMatch(
      /^Tenant "remote-hosts" has no agent "nobody"/,
    );
    expect(await refusal(...bind, 'echo', 'https://x.example')).toMatch(
      /^"https:\/\/x\.example" cannot be a host: give the name alone/,
    );
    expect(await refusal('hosts', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
    await must('tenants', 'create', 'remote-squatter');
    expect(
      await refusal('hosts', 'bind', 'bücher.example', '--tenant', 'remote-squatter', '--agent', 'echo'),
    ).toMatch(/is bound to another tenant: npx baton hosts unbind/);
    expect(await must('hosts', 'unbind', 'bücher.example')).toMatchObject({ host: bound.host, tenantId });
    expect(await refusal('hosts', 'unbind', 'bücher.example')).toMatch(/is not bound: npx baton hosts list/);
  });

  it('for issuers', async () => {
    const { id: tenantId } = await must('tenants', 'create', 'remote-issuers');
    const add = (issuer: string, ...args: string[]) => [
      'issuers',
      'add',
      issuer,
      '--tenant',
      'remote-issuers',
      '--audience',
      'baton',
      '--no-check',
      ...args,
    ];
    const rights = ['--claim', 'org=o1', '--subject', 'oid', '--scopes', 'agents:call,tasks:read'];
    const more = ['--grant', 'admin if groups=heads', '--agents', 'echo, desk', '--requests-per-second', '7'];
    const added = await must(...add('https://id.example.com', ...rights, ...more));
    expect(added).toEqual({
      id: expect.any(String) as string,
      tenantId,
      tenant: 'remote-issuers',
      issuer: 'https://id.example.com',
      audience: 'baton',
      selector: { claim: 'org', value: 'o1' },
      jwksUrl: null,
      subjectClaim: 'oid',
      scopes: ['agents:call', 'tasks:read'],
      grants: [{ claim: 'groups', value: 'heads', scopes: ['admin'] }],
      agents: ['echo', 'desk'],
      requestsPerSecond: 7,
      createdAt: expect.any(String) as string,
    });
    expect(await must('issuers', 'list')).toEqual([added]);
    expect(await must('issuers', 'list', '--tenant', 'remote-issuers')).toEqual([added]);
    expect(await refusal(...add('https://id.example.com', '--claim', 'org=o1'))).toBe(
      'Tenant remote-issuers trusts this issuer and audience already, and a token must select one tenant: use another ' +
        `--audience, give each entry another value of the same --claim, or npx baton issuers remove ${added.id as string} --tenant remote-issuers removes it.`,
    );
    expect(await refusal(...add('https://other.example.com', '--jwks-url', 'http://x.example.com'))).toMatch(
      /^--jwks-url: "http:\/\/x\.example\.com" is not encrypted, .* or --allow-http for a test\.$/,
    );
    for (const [option, value, reason] of [
      ['--claim', 'org', /^--claim: "org" is not a claim/],
      ['--scopes', 'everything', /no scope "everything"/],
      ['--agents', 'echo,De/sk', /^--agents: "De\/sk" is not the slug/],
      ['--requests-per-second', '0', /^--requests-per-second: "0" is not a number/],
      ['--grant', 'admin', /^--grant: "admin" is not a rule/],
    ] as const) {
      expect(await refusal(...add('https://other.example.com', option, value))).toMatch(reason);
    }
    expect(await refusal(...add('id.example.com'))).toMatch(/^Issuer: "id\.example\.com" is not a URL/);
    expect(await refusal('issuers', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
    const remove = ['issuers', 'remove', added.id as string, '--tenant'];
    expect(await must(...remove, 'remote-issuers')).toEqual(added);
    expect(await refusal(...remove, 'remote-issuers')).toMatch(
      /^Tenant "remote-issuers" trusts no issuer of that id/,
    );
  });

  it('for workers', async () => {
    expect((await baton('workers')).err).toBe('No worker has sent a heartbeat in the last hour.');
    const worker = {
      id: randomUUID(),
      host: 'w-1',
      pid: 7,
      concurrency: 4,
      version: '9.8.7',
      memoryBytes: 5 * 1024 ** 2,
    };
    await app.get(WorkerStore, { strict: false }).seen(worker, 1000);
    const time = expect.stringMatching(/^\d{4}-.*Z$/) as string;
    const failure = { slug: 'helper', file: 'helper/index.mjs', line: 3, reason: 'boom', tenants: ['acme'] };
    await app.get(WorkerStore, { strict: false }).reportFailures(worker, [failure]);
    expect(await must('workers')).toEqual([
      { ...worker, isAlive: true, running: 0, startedAt: time, seenAt: time, loadFailures: [failure] },
    ]);
    expect((await baton('workers')).err).toBe(`Worker ${worker.id} could not load helper/index.mjs:3: boom`);
    expect((await baton('workers')).out).toMatch(/\nw-1 +7 +0 +4 +yes +5 MiB +9\.8\.7 /);
    await app.get(WorkerStore, { strict: false }).remove(worker.id);
  });

  it('for dead letters', async () => {
    const { id: tenantId } = await must('tenants', 'create', 'remote-dead');
    const tokens = app.get(TokenService, { strict: false });
    const caller = { tenantId: tenantId as string, name: 'caller', scopes: [...TENANT_SCOPES] };
    const { secret } = await tokens.issue({ ...caller, expiresAt: null }, PLATFORM_ACTOR);
    const sent = await fetch(`${url}/agents/echo`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: {
          message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'a bitter pill' }] },
          configuration: { returnImmediately: true },
        },
      }),
    });
    const taskId = ((await sent.json()) as Json).result.task.id as string;
    const error = {
      attempt: 3,
      at: '2026-11-22T08:00:00.000Z',
      name: 'TypeError',
      message: 'x',
      stack: 'at y',
    };
    const sql = (text: string) => app.get(Database, { strict: false }).systemQuery({ text }, []);
    const [row] = await sql(
      `UPDATE runs SET error_detail = '${JSON.stringify(error)}' WHERE task_id = '${taskId}' RETURNING id::text AS id`,
    );
    const runId = row!.id as string;
    await sql(
      `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
       VALUES ('${tenantId as string}', '${runId}', '${taskId}', 'echo', 'died', 3)`,
    );
    const letter = {
      runId,
      taskId,
      tenantId,
      tenant: 'remote-dead',
      agentId: 'echo',
      attempts: 3,
      reason: 'died',
    };
    expect(await must('dead-letters', 'list')).toMatchObject([{ ...letter, redeliveredAt: null }]);
    expect(await must('dead-letters', 'show', runId)).toMatchObject({
      ...letter,
      message: { parts: [{ content: { $case: 'text', value: 'a bitter pill' } }] },
      error: { ...error, runId, output: [] },
    });
    const task = ['tasks', 'show', '--tenant', 'remote-dead'];
    const shown = { id: taskId, tenant: 'remote-dead', agentId: 'echo', state: 'submitted', events: 1 };
    expect(await must(...task, taskId)).toMatchObject({ ...shown, error: { ...error, runId } });
    expect((await baton(...task, taskId)).out).toMatch(/^id +[^]*\nat y$/);
    expect(await refusal(...task, randomUUID())).toMatch(/^The tenant "remote-dead" has no task "/);
    // The id alone is enough.
    expect(await must('tasks', 'find', taskId)).toMatchObject({ ...shown, error: { ...error, runId } });
    expect(await refusal('tasks', 'find', randomUUID())).toMatch(/^No tenant has a task "/);
    expect(await refusal('tasks', 'find', 'none')).toMatch(/^No tenant has a task "none"/);
    expect((await baton('dead-letters', 'show', runId)).out).toMatch(/\nmessage +a bitter pill\n[^]*\nat y$/);
    const [made] = (await must('dead-letters', 'redeliver', '--all', '--tenant', 'remote-dead')) as Json[];
    expect(made).toEqual({ runId, taskId: expect.not.stringMatching(taskId) as string });
    expect(await must('dead-letters', 'list', '--tenant', 'remote-dead')).toMatchObject([
      { redeliveredAt: expect.any(String) as string, redeliveredTaskId: made!.taskId as string },
    ]);
    expect(await refusal('dead-letters', 'redeliver', runId)).toBe(
      `Run ${runId} was redelivered before, as task ${made!.taskId as string}: add --again to redeliver it once more.`,
    );
    expect(await must('dead-letters', 'redeliver', runId, '--again')).toHaveLength(1);
    await sql(
      `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, last_error, delivered_sequence, head_sequence,
         failures, failing_since)
       SELECT tenant_id, id, unnest(ARRAY['a', 'b']), 'https://a.example/x', '1.0', 'dead', 'it answered HTTP 503', 0, 1, 9,
         now() FROM tasks WHERE id = '${taskId}'`,
    );
    const push = {
      taskId,
      tenantId,
      tenant: 'remote-dead',
      agentId: 'echo',
      receiver: 'https://a.example',
      isWebhook: false,
      status: null,
      error: 'it answered HTTP 503',
      failures: 9,
      waiting: 1,
      failingSince: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    };
    expect(await must('dead-letters', 'pushes')).toEqual([
      { ...push, configId: 'b' },
      { ...push, configId: 'a' },
    ]);
    const revive = ['dead-letters', 'redeliver-pushes', taskId];
    expect(await must(...revive, '--config', 'a')).toEqual({ taskId, configs: ['a'] });
    expect((await baton(...revive)).out).toBe('Push config b is delivered again.');
    expect(await must('dead-letters', 'pushes', '--tenant', 'remote-dead')).toEqual([]);
    expect(await refusal(...revive)).toMatch(/^No push config of task "/);
    const all = ['dead-letters', 'redeliver', '--all', '--tenant', 'remote-dead'];
    expect((await baton(...all)).err).toBe('There is nothing to redeliver.');
    expect(await refusal('dead-letters', 'show', randomUUID())).toMatch(/^There is no dead letter of run "/);
    expect(await refusal('dead-letters', 'list', '--tenant', 'nobody')).toMatch(
      /^There is no tenant "nobody"/,
    );
  });

  it('for secrets', async () => {
    await must('tenants', 'create', 'remote-secrets');
    const file = join(mkdtempSync(join(tmpdir(), 'baton-remote-')), 'value');
    writeFileSync(file, 'sk-hunter2');
    const secrets = (verb: string, ...args: string[]) => [
      'secrets',
      verb,
      '--tenant',
      'remote-secrets',
      ...args,
    ];
    const set = await must(...secrets('set', 'crm', '--file', file, '--origin', 'https://crm.example.com'));
    const time = expect.stringMatching(/^\d{4}-.*Z$/) as string;
    expect(set).toEqual({
      name: 'crm',
      keyId: expect.stringMatching(/^[\da-f]{12}$/) as string,
      origins: ['https://crm.example.com'],
      createdAt: time,
      updatedAt: time,
    });
    expect(await must(...secrets('list'))).toEqual([set]);
    expect((await baton(...secrets('origins', 'crm'))).out).toBe(
      'Secret crm of remote-secrets may be sent to: nothing.',
    );
    expect(await refusal(...secrets('origins', 'crm', 'b.example'))).toMatch(/origins\[0\]: must be scheme/);
    expect(await refusal(...secrets('set', 'a/b', '--file', file))).toMatch(
      /The name of the secret is not valid/,
    );
    const none = 'Tenant "remote-secrets" has no secret "none": npx baton secrets list';
    expect(await refusal(...secrets('origins', 'none'))).toContain(none);
    expect((await baton(...secrets('remove', 'crm'))).out).toBe('Secret crm of remote-secrets is removed.');
    expect(await refusal(...secrets('remove', 'none'))).toContain(none);
    expect(await refusal('secrets', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
  });

  it('for agents', async () => {
    await must('tenants', 'create', 'remote-agents');
    const file = join(mkdtempSync(join(tmpdir(), 'baton-remote-')), 'agent.yaml');
    writeFileSync(file, 'name: Second echo\ndescription: Says it again\nversion: 2.1.0\nruntime: echo\n');
    const agents = (verb: string, ...args: string[]) => [
      'agents',
      verb,
      '--tenant',
      'remote-agents',
      ...args,
    ];
    const made = await must(...agents('create', '--file', file, '--slug', 'second'));
    expect(made).toEqual({
      id: expect.any(String) as string,
      slug: 'second',
      name: 'Second echo',
      version: '2.1.0',
      description: 'Says it again',
      runtime: 'echo',
      origin: 'catalog',
      enabled: true,
    });
    expect(await must(...agents('list'))).toMatchObject([
      { slug: 'echo', origin: 'builtin', version: null, default: false },
      { slug: 'index', default: true },
      { ...made, version: 1, default: false },
    ]);
    expect(await refusal(...agents('create', '--file', file, '--slug', 'second'))).toMatch(
      new RegExp(`^${file}: .*"second"`),
    );
    writeFileSync(file, 'name: A\ndescription: b\nruntime: abacus\n');
    expect(await refusal(...agents('create', '--file', file))).toMatch(/there is no runtime "abacus"/);
    expect(await refusal('agents', 'create', '--tenant', 'nobody', '--file', file)).toMatch(
      /abacus|no tenant/,
    );
    expect(await refusal(...agents('remove', 'echo'))).toMatch(/is built in/);
    expect(await must(...agents('remove', 'second'))).toEqual(made);
    expect(await refusal('agents', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
  });

  it('for the audit log', async () => {
    const { id: tenantId } = await must('tenants', 'create', 'remote-audit');
    await must('tokens', 'create', '--tenant', 'remote-audit', '--name', 'ci');
    const audit = ['audit', '--tenant', 'remote-audit'];
    expect(await must(...audit)).toMatchObject([
      { action: 'token.create', tenant_id: tenantId as string, actor: { kind: 'operator' } },
      { action: 'tenant.create', target: { kind: 'tenant', name: 'remote-audit' } },
    ]);
    expect(await must(...audit, '--action', 'tenant')).toHaveLength(1);
    expect(await must(...audit, '--limit', '1')).toHaveLength(1);
    const lines = (await baton(...audit, '--lines')).out.split('\n').map((line) => JSON.parse(line) as Json);
    expect(lines).toEqual(await must(...audit));
    expect(((await must('audit', '--all')) as Json[]).length).toBeGreaterThan(2);
    expect(await refusal('audit', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
  });

  it('for tokens', async () => {
    await must('tenants', 'create', 'remote-tokens');
    const tokens = async (verb: string, ...args: string[]) =>
      must('tokens', verb, '--tenant', 'remote-tokens', ...args);
    const given = ['--name', 'desk', '--scopes', 'agents:call,tasks:read', '--agents', 'echo'];
    const { token, ...made } = await tokens(
      'create',
      ...given,
      '--requests-per-second',
      '7',
      '--expires',
      '30d',
    );
    expect(token).toMatch(/^baton_/);
    expect(made).toMatchObject({
      tenant: 'remote-tokens',
      name: 'desk',
      scopes: ['agents:call', 'tasks:read'],
      agents: ['echo'],
      requestsPerSecond: 7,
      state: 'active',
    });
    const { tenant: _, ...shown } = made;
    expect(await tokens('list')).toEqual([shown]);
    const running = { tasks: [], hasMore: false, schedules: [] };
    expect(await tokens('show', made.prefix as string)).toEqual({ ...shown, running });
    const rotated = await tokens('rotate', made.id as string, '--overlap', '12h');
    expect(rotated).toMatchObject({ id: made.id as string, previousPrefix: made.prefix as string });
    expect(await tokens('revoke', made.id as string, '--stop')).toMatchObject({
      state: 'revoked',
      running,
      canceledTasks: 0,
      pausedSchedules: 0,
    });
    expect(await refusal('tokens', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
    expect(await refusal('tokens', 'show', '--tenant', 'remote-tokens', 'baton_none')).toBe(
      'There is no such token: npx baton tokens list --tenant remote-tokens shows ids and prefixes.',
    );
    expect(await refusal('tokens', 'list', '--tenant', 'remote-tokens', '--token', 'baton_wrong')).toMatch(
      /refuses the token/,
    );
  });

  it('for tenants', async () => {
    const json = (...args: string[]) => must('tenants', ...args);
    const made = await json('create', 'remote');
    expect(made).toMatchObject({ slug: 'remote', defaultAgent: 'index', suspendedAt: null });
    expect(await json('list')).toContainEqual({ ...made, storedBytes: null });
    expect(await json('set', 'remote', '--default-agent', 'echo')).toMatchObject({ defaultAgent: 'echo' });
    expect(await json('limits', 'remote', '--open-streams', '5')).toMatchObject({
      openStreams: { value: 5, from: 'set' },
    });
    expect(await json('limits', 'remote', '--default', 'open-streams')).toMatchObject({
      openStreams: { value: 1_000, from: 'default' },
    });
    const lists = { allow: ['*.example.com', '10.0.0.0/8'], deny: [] };
    expect(await json('egress', 'remote', '--allow', '*.Example.com,10.0.0.0/8')).toEqual(lists);
    expect(await json('egress', 'remote')).toEqual(lists);
    expect(await json('usage', 'remote')).toMatchObject({ queuedRuns: 0, days: [] });
    expect(await json('suspend', 'remote', '--reason', 'unpaid')).toMatchObject({ canceledTasks: 0 });
    expect(await json('resume', 'remote')).toMatchObject({ suspendedAt: null });
    const file = join(mkdtempSync(join(tmpdir(), 'baton-remote-')), 'remote.ndjson');
    expect((await baton('tenants', 'export', 'remote', file)).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toMatch(/^\{"kind":"baton-tenant".*\n(.*\n)*\{"kind":"end".*\n$/);
    expect((await baton('tenants', 'import', 'remote-copy', file)).out).toMatch(/^Tenant remote-copy \(/);
    const deleted = await baton('tenants', 'delete', 'remote-copy', '--yes', '--json');
    expect(JSON.parse(deleted.out)).toMatchObject({ slug: 'remote-copy', rows: { audit_records: 1 } });
    const gone = await baton('tenants', 'resume', 'remote-copy');
    expect(gone).toMatchObject({
      code: 3,
      err: 'There is no tenant "remote-copy": npx baton tenants list shows all tenants.',
    });
    const refused = await baton('tenants', 'list', '--token', 'baton_operator_wrong');
    expect(refused).toMatchObject({ code: 4, err: expect.stringContaining('refuses the token') });
  });
});
