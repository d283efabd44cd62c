import { CatalogClient, Database, TaskStore, TenantStore } from '@baton/database';
import { Role, TaskState, textPart } from '@baton/a2a';
import type { Command } from 'commander';
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { baton, database, folder, refusal } from './operator.fixture.js';
import { buildProgram, COMMAND_NAMES } from './program.js';

interface Shown {
  id: string;
  tenant_id: string | null;
  actor: { kind: string; key: string };
  source: string;
  action: string;
  target: { kind: string; name: string };
  detail: Record<string, unknown>;
}

/** Commands that change nothing in the database. */
const READS = [
  'tenants list',
  'tokens list',
  'tokens show',
  'agents list',
  'agents schema',
  'hosts list',
  'secrets list',
  'issuers list',
  'operator-tokens list',
  'tenants usage',
  'tasks show',
  'dead-letters list',
  'dead-letters show',
  'dead-letters pushes',
  'audit',
  'config check',
  'workers',
  'queue',
  'doctor',
  'start',
  'master-key create',
  'master-key vault',
];
/** Commands that only call the server, which writes the record: apps/api/src/rest/audit/audit.int-spec.ts. */
const OVER_HTTP = [
  'agents apply',
  'agents show',
  'agents enable',
  'agents disable',
  'agents versions',
  'agents restore',
  'agents erase',
  'schedules list',
  'schedules create',
  'schedules show',
  'schedules pause',
  'schedules resume',
  'schedules run',
  'schedules remove',
  'send',
  'watch',
  'status',
  'usage',
  'tasks list',
  'tasks watch',
  'tasks logs',
  'tasks cancel',
  'tasks send-again',
  'approvals list',
  'approvals approve',
  'approvals reject',
  'webhooks list',
  'webhooks create',
  'webhooks show',
  'webhooks set',
  'webhooks enable',
  'webhooks disable',
  'webhooks rotate',
  'webhooks test',
  'webhooks remove',
];

const env = (): Record<string, string> => ({
  DATABASE_URL: database.url,
  BATON_MASTER_KEY: MASTER_KEY,
});
const MASTER_KEY = randomBytes(32).toString('base64');

async function must(line: string, input = ''): Promise<string> {
  const { code, out, err } = await baton(line, env(), input);
  expect({ line, code, err: code === 0 ? '' : err }).toEqual({ line, code: 0, err: '' });
  return out;
}

const audit = async (options: string): Promise<Shown[]> =>
  JSON.parse(await must(`audit ${options} --json`)) as Shown[];

/** A run of the tenant that has used up its attempts. @param taskId its task, of which a push config was given up as well */
async function deadRun(taskId = randomUUID()): Promise<string> {
  const [runId, contextId] = [randomUUID(), randomUUID()];
  const catalog = new CatalogClient(database.url);
  const own = new Database({ url: database.url, poolSize: 1 });
  const tenantId = (await new TenantStore(catalog).bySlug('walk'))?.id ?? '';
  await new TaskStore(own).create({
    tenantId,
    agentId: 'echo',
    runId,
    extensions: [],
    task: {
      id: taskId,
      contextId,
      artifacts: [],
      metadata: undefined,
      status: {
        state: TaskState.TASK_STATE_SUBMITTED,
        message: undefined,
        timestamp: new Date().toISOString(),
      },
      history: [
        {
          messageId: randomUUID(),
          taskId,
          contextId,
          role: Role.ROLE_USER,
          parts: [textPart('hi')],
          metadata: undefined,
          extensions: [],
          referenceTaskIds: [],
        },
      ],
    },
  });
  await own.systemQuery(
    {
      text: `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
             VALUES ('${tenantId}', '${runId}', '${taskId}', 'echo', 'died', 3)`,
    },
    [],
  );
  await own.systemQuery(
    {
      text: `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, delivered_sequence, head_sequence, failing_since)
             VALUES ('${tenantId}', '${taskId}', 'a', 'https://a.example', '1.0', 'dead', 0, 1, now())`,
    },
    [],
  );
  await Promise.all([own.close(), catalog.close()]);
  return runId;
}

/** How each command that changes something is called, and what the log then says. */
const WRITES: Readonly<Record<string, () => Promise<{ line: string; input?: string; record: object }>>> = {
  'tenants create': async () => ({
    line: 'tenants create another',
    record: { action: 'tenant.create', target: { kind: 'tenant', name: 'another' } },
  }),
  'tenants set': async () => ({
    line: 'tenants set walk --default-agent echo',
    record: { action: 'tenant.update', detail: { defaultAgent: 'echo' } },
  }),
  'tenants limits': async () => ({
    line: 'tenants limits walk --open-streams 5 --default tasks-waiting',
    record: { action: 'limits.change', detail: { set: { openStreams: 5 }, reset: ['tasksWaiting'] } },
  }),
  'tenants egress': async () => ({
    line: 'tenants egress walk --deny evil.example',
    record: { action: 'tenant.update', detail: { egressDeny: ['evil.example'] } },
  }),
  'tenants suspend': async () => ({
    line: 'tenants suspend another --reason unpaid',
    record: {
      action: 'tenant.suspend',
      target: { kind: 'tenant', name: 'another' },
      detail: { reason: 'unpaid' },
    },
  }),
  'tenants resume': async () => ({
    line: 'tenants resume another',
    record: { action: 'tenant.resume', target: { kind: 'tenant', name: 'another' } },
  }),
  'tenants export': async () => ({
    line: `tenants export another ${join(folder, 'another.ndjson')}`,
    record: { action: 'tenant.export', target: { kind: 'tenant', name: 'another' } },
  }),
  'tenants import': async () => ({
    line: `tenants import copied ${join(folder, 'another.ndjson')}`,
    record: { action: 'tenant.import', target: { kind: 'tenant', name: 'copied' } },
  }),
  'tenants delete': async () => ({
    line: 'tenants delete another --yes',
    record: { action: 'tenant.delete', tenant_id: null, target: { kind: 'tenant', name: 'another' } },
  }),
  'operator-tokens create': async () => ({
    line: 'operator-tokens create --name ops',
    record: { action: 'operator-token.create', tenant_id: null, detail: { name: 'ops' } },
  }),
  'operator-tokens revoke': async () => {
    const [token] = JSON.parse(await must('operator-tokens list --json')) as { id: string }[];
    const name = token?.id ?? '';
    return {
      line: `operator-tokens revoke ${name}`,
      record: { action: 'operator-token.revoke', tenant_id: null, target: { kind: 'token', name } },
    };
  },
  'issuers add': async () => ({
    line: 'issuers add https://idp.example --tenant walk --audience baton --no-check',
    record: { action: 'issuer.add', detail: { issuer: 'https://idp.example', audience: 'baton' } },
  }),
  'issuers remove': async () => {
    const [issuer] = JSON.parse(await must('issuers list --json')) as { id: string }[];
    const id = issuer?.id ?? '';
    return {
      line: `issuers remove ${id} --tenant walk`,
      record: { action: 'issuer.remove', target: { kind: 'issuer', name: id } },
    };
  },
  'tokens create': async () => ({
    line: 'tokens create --tenant walk --name ci --scopes agents:call',
    record: { action: 'token.create', detail: { name: 'ci', scopes: ['agents:call'], expiresAt: null } },
  }),
  'tokens rotate': async () => {
    const { id } = JSON.parse(await must('tokens create --tenant walk --json')) as { id: string };
    return {
      line: `tokens rotate ${id} --tenant walk --overlap 0`,
      record: { action: 'token.rotate', target: { kind: 'token', name: id }, detail: { overlapMs: 0 } },
    };
  },
  'tokens revoke': async () => {
    const { id } = JSON.parse(await must('tokens create --tenant walk --json')) as { id: string };
    return {
      line: `tokens revoke ${id} --tenant walk`,
      record: { action: 'token.revoke', target: { kind: 'token', name: id } },
    };
  },
  'agents create': async () => {
    const file = join(folder, 'agent.yaml');
    writeFileSync(file, 'name: Made\ndescription: Made\nruntime: echo\n');
    return {
      line: `agents create --tenant walk --file ${file}`,
      record: { action: 'agent.create', target: { kind: 'agent', name: 'made' } },
    };
  },
  'agents remove': async () => ({
    line: 'agents remove made --tenant walk',
    record: { action: 'agent.delete', target: { kind: 'agent', name: 'made' } },
  }),
  'hosts bind': async () => ({
    line: 'hosts bind walk.example --tenant walk --agent echo --public',
    record: { action: 'host.bind', target: { kind: 'host', name: 'walk.example' }, detail: { public: true } },
  }),
  'hosts unbind': async () => ({
    line: 'hosts unbind walk.example',
    record: { action: 'host.unbind', target: { kind: 'host', name: 'walk.example' } },
  }),
  'secrets set': async () => ({
    line: 'secrets set key --tenant walk',
    input: 'the value itself',
    record: { action: 'secret.set', target: { kind: 'secret', name: 'key' } },
  }),
  'secrets origins': async () => ({
    line: 'secrets origins key https://api.example.com --tenant walk',
    record: { action: 'secret.origins', detail: { origins: ['https://api.example.com'] } },
  }),
  'secrets rotate': async () => ({
    line: 'secrets rotate',
    record: { action: 'secret.rotate', tenant_id: null, detail: { rotated: 0, failed: 0 } },
  }),
  'secrets remove': async () => ({
    line: 'secrets remove key --tenant walk',
    record: { action: 'secret.delete', target: { kind: 'secret', name: 'key' } },
  }),
  'dead-letters redeliver': async () => {
    const runId = await deadRun();
    return {
      line: `dead-letters redeliver ${runId}`,
      record: { action: 'dead-letter.redeliver', target: { kind: 'run', name: runId } },
    };
  },
  'dead-letters redeliver-pushes': async () => {
    const taskId = randomUUID();
    await deadRun(taskId);
    return {
      line: `dead-letters redeliver-pushes ${taskId}`,
      record: {
        action: 'push.redeliver',
        target: { kind: 'task', name: taskId },
        detail: { configs: ['a'] },
      },
    };
  },
  backup: async () => ({
    line: `backup ${join(folder, 'walk.tar.gz')}`,
    record: { action: 'backup.create', tenant_id: null },
  }),
  restore: async () => ({
    line: `restore --force ${join(folder, 'walk.tar.gz')}`,
    record: { action: 'backup.restore', tenant_id: null },
  }),
};

const leaves = (command: Command): string[] =>
  command.commands.length === 0
    ? [command.name()]
    : command.commands.flatMap(leaves).map((name) => `${command.name()} ${name}`);

beforeAll(() => must('tenants create walk'));

it('every command is in one of the tables above', async () => {
  const cli = {
    source: {},
    terminal: { out: () => undefined, err: () => undefined },
    stdin: () => Readable.from([]),
  };
  const program = await buildProgram(COMMAND_NAMES, cli);
  // It prints a script, and knows of no tenant.
  const all = program.commands.flatMap(leaves).filter((name) => name !== 'complete');
  expect(all.sort()).toEqual([...READS, ...OVER_HTTP, ...Object.keys(WRITES)].sort());
});

it.each(Object.keys(WRITES))('%s writes one record of the operator', async (command) => {
  const { line, input, record } = (await WRITES[command]?.()) ?? { line: '', record: {} };
  const before = new Set((await audit('--all')).map(({ id }) => id));
  await must(line, input);
  const written = (await audit('--all')).filter(({ id }) => !before.has(id));
  const actor = { kind: 'operator', key: 'operator', name: null };
  // What a restore brings back was written before.
  const own = command === 'restore' ? written.slice(0, 1) : written;
  expect(own).toMatchObject([{ ...record, actor, source: 'command line', outcome: 'ok' }]);
  expect(own).toHaveLength(1);
  expect(JSON.stringify(own)).not.toContain('the value itself');
});

it('a tenant’s records are printed as a table, filtered', async () => {
  expect(await must('audit --tenant walk --action tenant --limit 1')).toMatch(
    /^TIME +ACTION +TARGET +WHO +FROM +OUTCOME\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d  tenant\.\w+ +tenant walk +operator +command line +ok$/,
  );
  expect(await audit('--tenant walk --from 2099-01-01T00:00:00Z')).toEqual([]);
  expect(await refusal('audit --tenant nobody', env())).toMatch(/^There is no tenant "nobody"/);
  expect(await refusal('audit --tenant walk --all', env())).toBe('Give --tenant <slug> or --all, not both.');
  expect(await refusal('audit --all --action paint', env())).toMatch(/^--action: there is no action "paint"/);
  expect(await refusal('audit --all --limit 0', env())).toMatch(/^--limit: "0" is not a whole number/);
  expect(await refusal('audit --all --until soon', env())).toMatch(/^--until: "soon" is not a time/);
});
