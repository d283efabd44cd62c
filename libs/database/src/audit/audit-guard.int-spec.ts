import { randomUUID } from 'node:crypto';
import { appendFileSync, chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { RunningPostgres } from '../../../../apps/local/src/services/index.js';
import { startTestPostgres } from '../../../../test/support/postgres.js';
import {
  AuditStore,
  CatalogClient,
  Database,
  inspectDatabase,
  PLATFORM,
  PLATFORM_ACTOR,
  RetentionStore,
  TenantRemovalStore,
  TenantStore,
} from '../index.js';
import { enforceAuditGuard, releaseAuditGuard } from '../migrations/audit-guard.js';
import { migrate } from '../migrations/migrate.js';

// As `npm start`, Docker Compose and the chart set it up: one role owns the tables, another one is that of all processes.

let folder: string;
let postgres: RunningPostgres;
let database: Database;
let catalog: CatalogClient;
let audit: AuditStore;
/** Sessions with the role of the processes, and with that of the owner. */
let client: Client;
let owner: Client;

async function sessionOf(url: string): Promise<Client> {
  const session = new Client({ connectionString: url });
  await session.connect();
  return session;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'baton-audit-'));
  chmodSync(folder, 0o711);
  const options = {
    separateOwner: true,
    settings: { fsync: 'off', shared_buffers: '32MB' },
    roleAttributes: 'CREATEROLE',
  };
  postgres = await startTestPostgres(join(folder, 'postgres'), options);
  // Lets another role sign in.
  await postgres.process.stop(5_000);
  appendFileSync(join(folder, 'postgres/data/pg_hba.conf'), 'host all reader 127.0.0.1/32 scram-sha-256\n');
  postgres = await startTestPostgres(join(folder, 'postgres'), options);
  await migrate(postgres.ownerUrl);
  database = new Database({ url: postgres.url, poolSize: 2 });
  catalog = new CatalogClient(postgres.url, { poolSize: 2 });
  audit = new AuditStore(database);
  [client, owner] = await Promise.all([sessionOf(postgres.url), sessionOf(postgres.ownerUrl)]);
});

afterAll(async () => {
  await Promise.all([client.end(), owner.end(), database.close(), catalog.close()]);
  await postgres.process.stop(5_000);
  rmSync(folder, { recursive: true, force: true });
});

const recordsOf = async (tenantId: string): Promise<string[]> =>
  (await audit.list({ tenantId, limit: 100 })).map(({ id }) => id).sort();

/** Records of the last `days` days, one a day. */
async function fill(tenantId: string, days: number): Promise<void> {
  await database.systemQuery(
    {
      text: `INSERT INTO audit_records (tenant_id, id, at, actor_kind, actor, action, target_kind, target)
       SELECT $1, gen_random_uuid(), now() - n * interval '1 day' + interval '1 minute', 'platform', 'platform', 'agent.update', 'agent', 'a'
       FROM generate_series(1, $2::int) n`,
    },
    [tenantId, days],
  );
}

/** In one transaction, in the scope of all tenants. */
async function attack(statements: string, session: Client = client): Promise<void> {
  try {
    await session.query(`BEGIN; SET LOCAL baton.tenant = 'system'`);
    await session.query(statements);
    await session.query('COMMIT');
  } finally {
    await session.query('ROLLBACK');
  }
}

const ANNOUNCED = `SET LOCAL baton.audit = 'delete'`;
/** Objects that stand before those of Postgres in the search_path. */
const SHADOWS = `CREATE SCHEMA evil;
  CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'delete' $$;
  CREATE FUNCTION evil.pg_get_userbyid(oid) RETURNS name LANGUAGE sql AS 'SELECT session_user::name';
  CREATE FUNCTION evil.has_table_privilege(name, text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
  CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2999-01-01' $$;
  CREATE FUNCTION evil.same(name, name) RETURNS boolean LANGUAGE sql AS 'SELECT true';
  CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.same);
  CREATE FUNCTION evil.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT true';
  CREATE OPERATOR evil.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.less);
  SET LOCAL search_path = evil, pg_catalog, public`;
const COLUMNS = 'tenant_id, id, actor_kind, actor, action, target_kind, target';

it.each([
  ['a change', `UPDATE audit_records SET actor = 'nobody'`],
  ['a deletion', 'DELETE FROM audit_records'],
  ['a deletion as release 0.2.0 announces it', `${ANNOUNCED}; DELETE FROM audit_records`],
  ['TRUNCATE', `${ANNOUNCED}; TRUNCATE audit_records`],
  [
    'an upsert',
    `INSERT INTO audit_records (${COLUMNS}) SELECT ${COLUMNS} FROM audit_records ON CONFLICT (tenant_id, id) DO UPDATE SET actor = 'nobody'`,
  ],
  ['other objects under the same names', `${SHADOWS}; ${ANNOUNCED}; DELETE FROM public.audit_records`],
  ['a disabled trigger', 'ALTER TABLE audit_records DISABLE TRIGGER ALL; DELETE FROM audit_records'],
  ['a removed trigger', 'DROP TRIGGER append_only ON audit_records; DELETE FROM audit_records'],
  [
    'a trigger of its own',
    'CREATE TRIGGER aaa BEFORE DELETE ON audit_records EXECUTE FUNCTION suppress_redundant_updates_trigger()',
  ],
  ['a rule', 'CREATE RULE r AS ON INSERT TO audit_records DO INSTEAD NOTHING'],
  ['triggers that do not fire', `SET LOCAL session_replication_role = replica; DELETE FROM audit_records`],
  [
    'another function of the trigger',
    'CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$; DELETE FROM audit_records',
  ],
  ['another path of the function', 'ALTER FUNCTION refuse_audit_change() SET search_path = evil'],
  ['the role of the owner', 'SET ROLE baton_owner; DELETE FROM audit_records'],
  ['another owner', 'ALTER TABLE audit_records OWNER TO baton'],
  ['a new column', 'ALTER TABLE audit_records ADD COLUMN x int'],
  ['another type of a column', `ALTER TABLE audit_records ALTER COLUMN actor TYPE text USING 'nobody'`],
  ['no table', 'DROP TABLE audit_records'],
  ['another retention', 'SELECT delete_old_audit_records(-1000, 1000)'],
  [
    'no retention',
    `SELECT delete_old_audit_records(NULL, 1000), delete_old_audit_records('-infinity', 1000)`,
  ],
  ['a later time', `${SHADOWS}; SELECT public.delete_old_audit_records(0, 1000)`],
  [
    'the end of a tenant that is not deleted',
    'SELECT delete_audit_records_of(t, 1000) FROM (SELECT DISTINCT tenant_id AS t FROM audit_records) a',
  ],
  ['the end of the platform', `SELECT delete_audit_records_of('${PLATFORM}', 1000)`],
])('the role of the processes deletes and changes no record by %s', async (_, statements) => {
  const tenantId = randomUUID();
  await fill(tenantId, 1);
  await audit.write(PLATFORM, {
    action: 'backup.create',
    target: { kind: 'database', name: 'baton' },
    by: PLATFORM_ACTOR,
  });
  const before = await Promise.all([tenantId, PLATFORM].map(recordsOf));
  expect(before.map((records) => records.length > 0)).toEqual([true, true]);
  await attack(statements).catch(() => undefined);
  expect(await Promise.all([tenantId, PLATFORM].map(recordsOf))).toEqual(before);
  const { rows } = await owner.query(
    `SELECT tgname FROM pg_trigger WHERE tgrelid = 'audit_records'::regclass AND tgenabled = 'O' ORDER BY 1`,
  );
  expect(rows).toEqual([{ tgname: 'append_only' }, { tgname: 'append_only_truncate' }]);
  expect(await audit.list({ tenantId, limit: 1 })).toMatchObject([{ actor: { key: 'platform' } }]);
});

it('retention deletes what is older than its days, and nothing of the last day', async () => {
  const tenantId = randomUUID();
  await fill(tenantId, 5);
  const retention = new RetentionStore(database);
  expect(await retention.dropAudit(3.5, 1)).toEqual({ auditRecords: 1 });
  expect(await retention.dropAudit(3.5, 10)).toEqual({ auditRecords: 1 });
  expect(await retention.dropAudit(3.5, 10)).toEqual({ auditRecords: 0 });
  expect(await recordsOf(tenantId)).toHaveLength(3);
  await retention.dropAudit(0, 100);
  expect(await recordsOf(tenantId)).toHaveLength(1);
});

it('the records of a tenant go with the tenant, and the log of the platform keeps one of that', async () => {
  const tenants = new TenantStore(catalog);
  const removal = new TenantRemovalStore(database);
  const [{ id }, { id: other }] = [
    await tenants.create('gone', PLATFORM_ACTOR),
    await tenants.create('other', PLATFORM_ACTOR),
  ];
  await fill(id, 3);
  await expect(removal.deleteSlice(id, 'audit_records', 2)).rejects.toThrow(
    `the audit log of the platform does not say that the tenant ${id} is deleted`,
  );
  await tenants.markDeleting('gone', PLATFORM_ACTOR);
  await tenants.markDeleting('gone', PLATFORM_ACTOR);
  expect(await removal.deleteSlice(id, 'audit_records', 3)).toBe(3);
  expect(await removal.deleteSlice(id, 'audit_records', 3)).toBe(1);
  expect(await removal.deleteSlice(id, 'audit_records', 3)).toBe(0);
  await removal.deleteTenant(id);
  const deletions = await audit.list({ tenantId: PLATFORM, action: 'tenant.delete', limit: 10 });
  expect(deletions).toMatchObject([{ target: { kind: 'tenant', name: 'gone' } }]);
  expect(await recordsOf(other)).toHaveLength(1);
  // Nor does one tenant's scope reach the records of another.
  await client.query(`BEGIN; SET LOCAL baton.tenant = '${other}'`);
  await expect(client.query(`SELECT delete_audit_records_of('${id}', 10)`)).rejects.toThrow('does not say');
  await client.query('ROLLBACK');
});

it('a role that may only read deletes no record through the functions', async () => {
  await client.query(`CREATE ROLE reader LOGIN PASSWORD 'reader'`);
  await owner.query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader');
  const tenantId = randomUUID();
  await fill(tenantId, 3);
  const reader = await sessionOf(postgres.url.replace(/\/\/.*@/, '//reader:reader@'));
  try {
    await reader.query(`SET baton.tenant = 'system'`);
    expect((await reader.query('SELECT FROM audit_records')).rowCount).toBeGreaterThan(2);
    for (const call of [`delete_old_audit_records(1, 10)`, `delete_audit_records_of('${tenantId}', 10)`]) {
      await expect(reader.query(`SELECT ${call}`)).rejects.toThrow('the role reader may not delete records');
    }
  } finally {
    await reader.end();
  }
  expect(await recordsOf(tenantId)).toHaveLength(3);
});

it('processes of release 0.2.0 delete records until the guard is enforced', async () => {
  const remove = (tenantId: string) =>
    attack(`${ANNOUNCED}; DELETE FROM audit_records WHERE tenant_id = '${tenantId}'`);
  const tenantId = randomUUID();
  await fill(tenantId, 2);
  expect((await inspectDatabase(postgres.url, undefined)).auditGuard).toBe('owner');
  await expect(remove(tenantId)).rejects.toThrow('append-only');

  await releaseAuditGuard(postgres.ownerUrl, undefined);
  expect((await inspectDatabase(postgres.url, undefined)).auditGuard).toBe('announced');
  await remove(tenantId);
  expect(await recordsOf(tenantId)).toEqual([]);
  // No statement deletes or changes a record by mistake.
  await fill(tenantId, 2);
  for (const statement of [
    'DELETE FROM audit_records',
    `${ANNOUNCED}; UPDATE audit_records SET actor = ''`,
  ]) {
    await expect(attack(statement)).rejects.toThrow('append-only');
  }
  const lines: string[] = [];
  await migrate(postgres.ownerUrl, { report: (line) => lines.push(line) });
  expect(lines.join('\n')).toContain('`npm run migrate -- --audit-log enforce`');

  await enforceAuditGuard(postgres.ownerUrl, undefined);
  await expect(remove(tenantId)).rejects.toThrow('append-only');
  const actions = await audit.list({ tenantId: PLATFORM, action: 'audit-log', limit: 2 });
  expect(actions.map(({ action }) => action)).toEqual(['audit-log.enforce', 'audit-log.release']);
});
