import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { type Scope, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import {
  ApproverError,
  CatalogClient,
  IssuerStore,
  type NextTurnResult,
  TenantStore,
  TokenStore,
} from '../index.js';
import { endTurn, newTask, openStores, sql, startTask, type Stores, textMessage } from '../stores.fixture.js';

let stores: Stores;
let catalog: CatalogClient;
let tokens: TokenStore;
let tenantId: string;
let taskId: string;

beforeAll(async () => {
  stores = await openStores();
  catalog = new CatalogClient(stores.url);
  tokens = new TokenStore(catalog);
});
afterAll(async () => {
  await catalog.close();
  await stores.close();
});
beforeEach(async () => {
  tenantId = (await new TenantStore(catalog).create(`t-${randomUUID()}`, PLATFORM_ACTOR)).id;
  const run = await startTask(stores, newTask({ tenantId }));
  await endTurn(stores, run, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
  taskId = run.taskId;
});

const tokenWith = async (scopes: Scope[], expiresAt: Date | null = null): Promise<string> => {
  const secret = { hash: randomUUID(), prefix: 'baton_abc' };
  const rights = { name: 'approver', scopes, agents: [], requestsPerSecond: null, expiresAt };
  return (await tokens.create({ tenantId, ...secret, ...rights }, PLATFORM_ACTOR)).id;
};
const approveBy = (by: { approvingToken: string } | { approvingIssuer: string }): Promise<NextTurnResult> =>
  stores.tasks.continue({
    tenantId,
    agentId: 'echo',
    taskId,
    runId: randomUUID(),
    extensions: [],
    ...by,
    message: textMessage('yes'),
  });
/** @returns the id of its entry */
async function trustedIssuer(): Promise<string> {
  const result = await new IssuerStore(catalog).add(
    {
      tenantId,
      issuer: `https://${randomUUID()}.example.com`,
      audience: 'baton',
      selector: null,
      jwksUrl: null,
      subjectClaim: 'sub',
      scopes: ['tasks:approve'],
      grants: [],
      agents: [],
      requestsPerSecond: null,
    },
    PLATFORM_ACTOR,
  );
  if ('conflict' in result) throw new Error('another issuer is in the way');
  return result.added.id;
}
const approve = (approvingToken: string): Promise<NextTurnResult> => approveBy({ approvingToken });
const runs = () => sql(stores, `SELECT 1 FROM runs WHERE tenant_id = '${tenantId}'`);

describe('an approval', () => {
  it.each([[['tasks:approve']], [['admin']]] as [Scope[]][])(
    'is written for a token with %j',
    async (scopes) => {
      expect(await approve(await tokenWith(scopes))).toMatchObject({ ok: true });
      expect(await runs()).toHaveLength(2);
    },
  );

  it('is not written for a token that has no right to it any more', async () => {
    const [past, other] = [new Date(Date.now() - 1000), await tokenWith(['tasks:approve'])];
    await tokens.revoke(tenantId, other, PLATFORM_ACTOR);
    for (const token of [
      other,
      await tokenWith(['tasks:write']),
      await tokenWith(['admin'], past),
      randomUUID(),
    ]) {
      await expect(approve(token)).rejects.toThrow(ApproverError);
    }
    expect(await runs()).toHaveLength(1);
    const found = await stores.tasks.get(tenantId, taskId);
    expect(found?.task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  });

  it('is written for a user while the tenant trusts its issuer, and not after', async () => {
    const issuers = new IssuerStore(catalog);
    const approvingIssuer = await trustedIssuer();
    const { id: otherTenant } = await new TenantStore(catalog).create(`t-${randomUUID()}`, PLATFORM_ACTOR);
    expect(await issuers.remove(otherTenant, approvingIssuer, PLATFORM_ACTOR)).toBeUndefined();
    await issuers.remove(tenantId, approvingIssuer, PLATFORM_ACTOR);
    await expect(approveBy({ approvingIssuer })).rejects.toThrow(ApproverError);
    await expect(approveBy({ approvingIssuer: randomUUID() })).rejects.toThrow(ApproverError);
    expect(await runs()).toHaveLength(1);
    const again = await trustedIssuer();
    expect(await approveBy({ approvingIssuer: again })).toMatchObject({ ok: true });
    expect(await runs()).toHaveLength(2);
  });

  it.each<[string, () => Promise<{ by: Parameters<typeof approveBy>[0]; revoke: string }>]>([
    [
      'of its token',
      async () => {
        const token = await tokenWith(['tasks:approve']);
        const revoke = `UPDATE api_tokens SET revoked_at = now() WHERE id = '${token}'`;
        return { by: { approvingToken: token }, revoke };
      },
    ],
    [
      'of the trust in its issuer',
      async () => {
        const issuer = await trustedIssuer();
        return { by: { approvingIssuer: issuer }, revoke: `DELETE FROM issuers WHERE id = '${issuer}'` };
      },
    ],
  ])('waits for a revocation %s that has begun, and is refused after it', async (_, begin) => {
    const { by, revoke } = await begin();
    const client = new Client({ connectionString: stores.url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      await client.query('BEGIN');
      await client.query(revoke);
      const approved = approveBy(by).then(
        () => 'written',
        (error: unknown) => (error as Error).name,
      );
      const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR SHARE%'
        AND datname = current_database()`;
      while ((await sql(stores, waits)).length === 0);
      await client.query('COMMIT');
      expect(await approved).toBe('ApproverError');
      expect(await runs()).toHaveLength(1);
    } finally {
      await client.end();
    }
  });
});
