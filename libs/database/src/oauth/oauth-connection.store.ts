import { Injectable } from '@nestjs/common';
import { type Actor, type NewAuditRecord, PLATFORM_ACTOR } from '../audit/audit-records.js';
import type { SealedSecret } from '../catalog/catalog-records.js';
import { CatalogClient, transactionOf } from '../connection/catalog-client.js';
import { Database, type Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { PageAfter } from '../tenants/tenant-records.js';
import type {
  ConnectionCall,
  NewTokens,
  OAuthConnectionKey,
  SealedConnection,
  TokensKey,
} from './oauth-connection-records.js';

/** A row of `oauth_connections`, as far as it is read. */
export interface ConnectionRow {
  id: string;
  resource: string;
  caller: string;
  issuer: string;
  scope: string | null;
  ended: string | null;
  key_id: string;
  nonce: Buffer;
  ciphertext: Buffer;
  refresh_at: Date | null;
  generation: number;
  created_by: string;
  created_at: Date;
  updated_at: Date;
}

/** The columns of `ConnectionRow`. */
export const CONNECTION_COLUMNS =
  'id::text, resource, caller, issuer, scope, ended, key_id, nonce, ciphertext, refresh_at, generation, created_by, created_at, updated_at';

/** $1 tenant $2 resource $3 caller */
const FIND: Statement = {
  name: 'oauth-connection-find',
  text: `SELECT ${CONNECTION_COLUMNS} FROM oauth_connections WHERE tenant_id = ${keyOfTenant('$1')} AND resource = $2 AND caller = $3`,
};

/** $1 tenant $2 resource $3 caller */
const SIGNED_IN: Statement = {
  name: 'oauth-connection-signed-in',
  text: `
SELECT id::text FROM oauth_connections WHERE tenant_id = ${keyOfTenant('$1')} AND resource = $2 AND caller = $3 AND ended IS NULL`,
};

/** $1 tenant $2 after this id $3 limit */
const LIST: Statement = {
  name: 'oauth-connection-list',
  text: `SELECT ${CONNECTION_COLUMNS} FROM oauth_connections WHERE tenant_id = ${keyOfTenant('$1')} AND id > $2::uuid ORDER BY id LIMIT $3`,
};

/** $1 tenant $2 id */
const GET: Statement = {
  name: 'oauth-connection-get',
  text: `SELECT ${CONNECTION_COLUMNS} FROM oauth_connections WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2::uuid`,
};

/** One process at a time refreshes these tokens. $1 tenant $2 id $3 generation $4 process $5 for so long, in ms */
const CLAIM: Statement = {
  name: 'oauth-connection-claim',
  text: `
UPDATE oauth_connections SET refresher = $4::uuid, refresher_until = clock_timestamp() + $5::int * interval '1 millisecond'
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2::uuid AND generation = $3 AND ended IS NULL
  AND (refresher IS NULL OR refresher_until <= clock_timestamp())
RETURNING id::text`,
};

/** $1 tenant $2 id $3 generation $4 process */
const RELEASE: Statement = {
  name: 'oauth-connection-release',
  text: `
UPDATE oauth_connections SET refresher = NULL, refresher_until = NULL
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2::uuid AND generation = $3 AND refresher = $4::uuid`,
};

type Refreshed = TokensKey & NewTokens & { refresher: string };

const REFRESHED_INPUTS = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  generation: ['int', ({ generation }) => generation],
  refresher: ['uuid', ({ refresher }) => refresher],
  key_id: ['text', ({ sealed }) => sealed.keyId],
  nonce: ['bytea', ({ sealed }) => sealed.nonce],
  ciphertext: ['bytea', ({ sealed }) => sealed.ciphertext],
  scope: ['text', ({ scope }) => scope],
  refresh_at: ['timestamptz', ({ refreshAt }) => refreshAt],
} satisfies Inputs<Refreshed>;

const REFRESHED = statement(
  'oauth-connection-refreshed',
  { now: one(REFRESHED_INPUTS) },
  ({ now }) => `
UPDATE oauth_connections SET generation = generation + 1, refresher = NULL, refresher_until = NULL,
  key_id = ${now.key_id}, nonce = ${now.nonce}, ciphertext = ${now.ciphertext}, scope = ${now.scope}, refresh_at = ${now.refresh_at},
  updated_at = now()
WHERE tenant_id = ${keyOfTenant(now.tenant_id)} AND id = ${now.id} AND generation = ${now.generation} AND refresher = ${now.refresher}
  AND ended IS NULL
RETURNING id::text`,
);

/** $1 tenant $2 id $3 generation $4 why */
const END: Statement = {
  text: `
UPDATE oauth_connections SET ended = $4, refresher = NULL, refresher_until = NULL, updated_at = now()
WHERE tenant_id = $1::uuid AND id = $2::uuid AND generation = $3::int AND ended IS NULL RETURNING resource, caller`,
};

/** No id is smaller. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** The sign-ins of tenants and their callers at servers that agents call. The tokens cannot be read without the master key. */
@Injectable()
export class OAuthConnectionStore {
  constructor(
    private readonly database: Database,
    private readonly catalog: CatalogClient,
  ) {}

  async find({ tenantId, resource, caller }: OAuthConnectionKey): Promise<SealedConnection | undefined> {
    const rows = await this.database.tenantQuery<ConnectionRow>(tenantId, FIND, [
      tenantId,
      resource,
      caller ?? '',
    ]);
    return rows.map((row) => connectionOf(tenantId, row))[0];
  }

  async get(tenantId: string, id: string): Promise<SealedConnection | undefined> {
    const rows = await this.database.tenantQuery<ConnectionRow>(tenantId, GET, [tenantId, id]);
    return rows.map((row) => connectionOf(tenantId, row))[0];
  }

  /**
   * Records a call in the audit log: whose sign-in it uses, its agent, and the caller.
   * @returns false: there is no sign-in, and no record was written
   */
  async noteCall({ tenantId, resource, caller }: OAuthConnectionKey, call: ConnectionCall): Promise<boolean> {
    return this.database.inTenant(tenantId, async (transaction) => {
      const values = [tenantId, resource, caller ?? ''];
      const [row] = await transaction.query<Pick<ConnectionRow, 'id'>>(SIGNED_IN, values);
      if (!row) return false;
      const { id, target, agent, detail } = call;
      const subject = caller ?? 'tenant';
      await transaction.record({
        id,
        action: 'tool.called',
        target,
        by: { kind: 'agent', key: `agent:${agent}`, name: `${agent} for ${caller ?? 'the tenant'}` },
        detail: { subject, ...detail, resource, connection: row.id },
      });
      return true;
    });
  }

  /** In the order of their ids. */
  async list(tenantId: string, { limit, after }: PageAfter): Promise<SealedConnection[]> {
    const values = [tenantId, after ?? FIRST_ID, limit];
    const rows = await this.database.tenantQuery<ConnectionRow>(tenantId, LIST, values);
    return rows.map((row) => connectionOf(tenantId, row));
  }

  /** Whether this process may refresh these tokens now. No other one may for as long. */
  async claimRefresh(
    { tenantId, id, generation }: TokensKey,
    refresher: string,
    forMs: number,
  ): Promise<boolean> {
    const values = [tenantId, id, generation, refresher, forMs];
    return (await this.database.tenantQuery(tenantId, CLAIM, values)).length > 0;
  }

  /** The tokens were not refreshed: another process may try. */
  async releaseRefresh({ tenantId, id, generation }: TokensKey, refresher: string): Promise<void> {
    await this.database.tenantQuery(tenantId, RELEASE, [tenantId, id, generation, refresher]);
  }

  /** Stores what a refresh has brought. @returns false if another process has these tokens now */
  async storeRefreshed(
    { tenantId, id, generation }: TokensKey,
    refresher: string,
    tokens: NewTokens,
  ): Promise<boolean> {
    const values = REFRESHED.values({ now: { tenantId, id, generation, refresher, ...tokens } });
    return (await this.database.tenantQuery(tenantId, REFRESHED, values)).length > 0;
  }

  /** These tokens are no longer valid. Tokens that came after them stay. @param why for people */
  async end({ tenantId, id, generation }: TokensKey, why: string): Promise<void> {
    await this.catalog.change(tenantId, async (prisma, record) => {
      const values = [tenantId, id, generation, why];
      const [row] = await transactionOf(prisma).query<Pick<ConnectionRow, 'resource' | 'caller'>>(
        END,
        values,
      );
      if (row) await record(recordOf('connection.end', id, row, PLATFORM_ACTOR, { why }));
    });
  }

  /** @returns the deleted connection; undefined if there is none */
  async remove(tenantId: string, id: string, by: Actor): Promise<SealedConnection | undefined> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const remove = {
        text: `DELETE FROM oauth_connections WHERE tenant_id = $1::uuid AND id = $2::uuid RETURNING ${CONNECTION_COLUMNS}`,
      };
      const [row] = await transactionOf(prisma).query<ConnectionRow>(remove, [tenantId, id]);
      if (!row) return undefined;
      await record(recordOf('connection.sign-out', id, row, by));
      return connectionOf(tenantId, row);
    });
  }
}

/** The record of a connection in the audit log. */
export const recordOf = (
  action: 'connection.begin' | 'connection.sign-in' | 'connection.end' | 'connection.sign-out',
  id: string,
  { resource, caller }: Pick<ConnectionRow, 'resource' | 'caller'>,
  by: Actor,
  detail: object = {},
): NewAuditRecord => ({
  action,
  target: { kind: 'connection', name: id },
  by,
  detail: { resource, ...(caller !== '' && { caller }), ...detail },
});

/** The connection of a row. */
export const connectionOf = (tenantId: string, row: ConnectionRow): SealedConnection => ({
  tenantId,
  id: row.id,
  resource: row.resource,
  caller: row.caller === '' ? null : row.caller,
  issuer: row.issuer,
  scope: row.scope,
  ended: row.ended,
  refreshAt: row.refresh_at,
  generation: row.generation,
  createdBy: row.created_by,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  sealed: sealedOf(row),
});

const sealedOf = ({ key_id: keyId, nonce, ciphertext }: ConnectionRow): SealedSecret => ({
  keyId,
  nonce,
  ciphertext,
});
