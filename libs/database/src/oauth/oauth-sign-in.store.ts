import { TaskState } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { Actor } from '../audit/audit-records.js';
import type { SealedSecret } from '../catalog/catalog-records.js';
import { CatalogClient, transactionOf } from '../connection/catalog-client.js';
import { Database, type Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { recordOf } from './oauth-connection.store.js';
import type {
  DoneSignIn,
  NewSignIn,
  NewTokens,
  OAuthSignIn,
  SignInProof,
} from './oauth-connection-records.js';

interface SignInRow {
  id: string;
  resource: string;
  caller: string;
  agent: string;
  settings: unknown;
  task_id: string | null;
  terms: unknown;
  created_by: string;
  expires_at: Date;
}

const COLUMNS = 'id::text, resource, caller, agent, settings, task_id::text, terms, created_by, expires_at';
/** Maximum number of times that the browser that has opened a link first may open it. */
const MAX_OPENED = 20;

const NEW_SIGN_IN = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  resource: ['text', ({ resource }) => resource],
  caller: ['text', ({ caller }) => caller ?? ''],
  agent: ['text', ({ agent }) => agent],
  settings: ['json', ({ settings }) => JSON.stringify(settings)],
  task_id: ['uuid', ({ taskId }) => taskId],
  ticket: ['bytea', ({ ticket }) => ticket],
  created_by: ['text', ({ createdBy }) => createdBy],
  ttl_ms: ['float8', ({ ttlMs }) => ttlMs],
} satisfies Inputs<NewSignIn>;

const CREATE = statement(
  undefined,
  { made: one(NEW_SIGN_IN) },
  ({ made }) => `
WITH expired AS (DELETE FROM oauth_sign_ins WHERE tenant_id = ${made.tenant_id} AND expires_at <= now() - interval '1 day')
INSERT INTO oauth_sign_ins (tenant_id, id, resource, caller, agent, settings, task_id, ticket, created_by, expires_at)
VALUES (${made.tenant_id}, ${made.id}, ${made.resource}, ${made.caller}, ${made.agent}, ${made.settings}, ${made.task_id},
  ${made.ticket}, ${made.created_by}, now() + ${made.ttl_ms} * interval '1 millisecond')
RETURNING ${COLUMNS}`,
);

/** $1 tenant $2 task $3 resource */
const REPLACE: Statement = {
  name: 'oauth-sign-in-replace',
  text: `
DELETE FROM oauth_sign_ins WHERE tenant_id = ${keyOfTenant('$1')} AND task_id = $2::uuid AND resource = $3
RETURNING expires_at <= clock_timestamp() AS is_over`,
};

/** $1 tenant $2 task */
const OF_TASK: Statement = {
  name: 'oauth-sign-in-of-task',
  text: `
SELECT ${COLUMNS} FROM oauth_sign_ins
WHERE tenant_id = ${keyOfTenant('$1')} AND task_id = $2::uuid AND expires_at > clock_timestamp() ORDER BY id DESC LIMIT 1`,
};

/** $1 tenant $2 id $3 ticket */
const FIND: Statement = {
  name: 'oauth-sign-in-find',
  text: `
SELECT ${COLUMNS} FROM oauth_sign_ins
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2::uuid AND ticket = $3 AND expires_at > clock_timestamp()`,
};

interface SignInOpening extends SignInProof {
  tenantId: string;
  id: string;
  ticket: Buffer;
  before: Buffer | undefined;
  terms: object;
}

const OPENING = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  ticket: ['bytea', ({ ticket }) => ticket],
  before: ['bytea', ({ before }) => before],
  state: ['bytea', ({ state }) => state],
  browser: ['bytea', ({ browser }) => browser],
  terms: ['json', ({ terms }) => JSON.stringify(terms)],
} satisfies Inputs<SignInOpening>;

const OPEN = statement(
  'oauth-sign-in-open',
  { opening: one(OPENING) },
  ({ opening }) => `
UPDATE oauth_sign_ins SET state = ${opening.state}, browser = ${opening.browser}, terms = ${opening.terms}, opened = opened + 1
WHERE tenant_id = ${keyOfTenant(opening.tenant_id)} AND id = ${opening.id} AND ticket = ${opening.ticket}
  AND expires_at > clock_timestamp() AND opened < ${MAX_OPENED} AND (browser IS NULL OR browser = ${opening.before})
RETURNING id::text`,
);

/** Taken once: the code of the authorization server is valid once, too. $1 tenant $2 id $3 state $4 browser */
const TAKE: Statement = {
  name: 'oauth-sign-in-take',
  text: `
UPDATE oauth_sign_ins SET state = NULL
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2::uuid AND state = $3 AND browser = $4 AND expires_at > clock_timestamp()
RETURNING ${COLUMNS}`,
};

type Connecting = DoneSignIn & NewTokens & { issuer: string };

const CONNECTING = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  resource: ['text', ({ resource }) => resource],
  caller: ['text', ({ caller }) => caller ?? ''],
  issuer: ['text', ({ issuer }) => issuer],
  scope: ['text', ({ scope }) => scope],
  key_id: ['text', ({ sealed }) => sealed.keyId],
  nonce: ['bytea', ({ sealed }) => sealed.nonce],
  ciphertext: ['bytea', ({ sealed }) => sealed.ciphertext],
  refresh_at: ['timestamptz', ({ refreshAt }) => refreshAt?.toISOString() ?? null],
  created_by: ['text', ({ createdBy }) => createdBy],
} satisfies Inputs<Connecting>;

const CONNECT = statement(
  undefined,
  { made: one(CONNECTING) },
  ({ made }) => `
INSERT INTO oauth_connections (tenant_id, id, resource, caller, issuer, scope, key_id, nonce, ciphertext, refresh_at, created_by)
VALUES (${made.tenant_id}, ${made.id}, ${made.resource}, ${made.caller}, ${made.issuer}, ${made.scope}, ${made.key_id}, ${made.nonce},
  ${made.ciphertext}, ${made.refresh_at}, ${made.created_by})
ON CONFLICT (tenant_id, resource, caller) DO UPDATE SET id = excluded.id, issuer = excluded.issuer, scope = excluded.scope,
  key_id = excluded.key_id, nonce = excluded.nonce, ciphertext = excluded.ciphertext, refresh_at = excluded.refresh_at,
  generation = oauth_connections.generation + 1, ended = NULL, refresher = NULL, refresher_until = NULL,
  created_by = excluded.created_by, created_at = now(), updated_at = now()
RETURNING id::text`,
);

/**
 * Deletes the sign-ins for a connection and makes the tasks that wait for it due, so that the sweep continues them. `wakeSignedIn`
 * continues a task that is about to ask. A task that a message is about to continue is due ten seconds later: the sweep would make
 * it busy before. $1 tenant $2 resource $3 caller $4 that task, or NULL
 */
const WAKE: Statement = {
  text: `
WITH done AS (
  DELETE FROM oauth_sign_ins WHERE tenant_id = $1::uuid AND resource = $2 AND caller = $3 RETURNING task_id
)
UPDATE tasks t SET wakes_at = clock_timestamp() + CASE WHEN t.id::text = $4 THEN interval '10 seconds' ELSE interval '0' END FROM done
WHERE t.tenant_id = $1::uuid AND t.id = done.task_id AND t.state = ${TaskState.TASK_STATE_AUTH_REQUIRED} AND t.wakes_at IS NOT NULL`,
};

/** $1 tenant $2 issuer */
const FIND_CLIENT: Statement = {
  name: 'oauth-client-find',
  text: `
SELECT redirect_uri AS "redirectUri", key_id AS "keyId", nonce, ciphertext FROM oauth_clients
WHERE tenant_id = ${keyOfTenant('$1')} AND issuer = $2`,
};

type NewClient = SealedOAuthClient & { tenantId: string; issuer: string };

const NEW_CLIENT = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  issuer: ['text', ({ issuer }) => issuer],
  redirect_uri: ['text', ({ redirectUri }) => redirectUri],
  key_id: ['text', ({ keyId }) => keyId],
  nonce: ['bytea', ({ nonce }) => nonce],
  ciphertext: ['bytea', ({ ciphertext }) => ciphertext],
} satisfies Inputs<NewClient>;

const PUT_CLIENT = statement(
  'oauth-client-put',
  { made: one(NEW_CLIENT) },
  ({ made }) => `
INSERT INTO oauth_clients (tenant_id, issuer, redirect_uri, key_id, nonce, ciphertext)
VALUES (${made.tenant_id}, ${made.issuer}, ${made.redirect_uri}, ${made.key_id}, ${made.nonce}, ${made.ciphertext})
ON CONFLICT (tenant_id, issuer) DO UPDATE SET redirect_uri = excluded.redirect_uri, key_id = excluded.key_id, nonce = excluded.nonce,
  ciphertext = excluded.ciphertext, created_at = now()
WHERE oauth_clients.redirect_uri <> excluded.redirect_uri`,
);

/** $1 tenant $2 issuer */
const FORGET_CLIENT: Statement = {
  name: 'oauth-client-forget',
  text: `DELETE FROM oauth_clients WHERE tenant_id = ${keyOfTenant('$1')} AND issuer = $2`,
};

/** Who Baton is for an authorization server, encrypted. */
export type SealedOAuthClient = SealedSecret & { redirectUri: string };

/** Sign-ins that were begun, and the clients that authorization servers have registered. */
@Injectable()
export class OAuthSignInStore {
  constructor(
    private readonly database: Database,
    private readonly catalog: CatalogClient,
  ) {}

  async create(signIn: NewSignIn, by: Actor): Promise<OAuthSignIn> {
    const { tenantId, id, agent } = signIn;
    return this.catalog.change(tenantId, async (prisma, record) => {
      const [row] = await transactionOf(prisma).query<SignInRow>(CREATE, CREATE.values({ made: signIn }));
      if (!row) throw new Error('the sign-in was not stored');
      await record(recordOf('connection.begin', id, row, by, { agent }));
      return signInOf(tenantId, row);
    });
  }

  /**
   * The same for a task. It replaces the sign-in that the task has waited for.
   * @returns undefined: that one had expired
   */
  async createForTask(signIn: NewSignIn, by: Actor): Promise<OAuthSignIn | undefined> {
    const { tenantId, taskId, resource } = signIn;
    const values = [tenantId, taskId, resource];
    const before = await this.database.tenantQuery<{ is_over: boolean }>(tenantId, REPLACE, values);
    return before.some(({ is_over: isOver }) => isOver) ? undefined : this.create(signIn, by);
  }

  /** The sign-in that a task waits for. */
  async ofTask(
    tenantId: string,
    taskId: string,
  ): Promise<Pick<OAuthSignIn, 'resource' | 'agent' | 'settings'> | undefined> {
    const rows = await this.database.tenantQuery<SignInRow>(tenantId, OF_TASK, [tenantId, taskId]);
    return rows.map((row) => signInOf(tenantId, row))[0];
  }

  /** @param ticket SHA-256 of the ticket in the link */
  async find(tenantId: string, id: string, ticket: Buffer): Promise<OAuthSignIn | undefined> {
    const rows = await this.database.tenantQuery<SignInRow>(tenantId, FIND, [tenantId, id, ticket]);
    return rows.map((row) => signInOf(tenantId, row))[0];
  }

  /**
   * A browser goes to the authorization server.
   * @param before the value in the cookie of the browser, if it has opened the link before
   * @returns false if another browser has opened it, or if it has expired
   */
  async open(
    { tenantId, id, ticket }: { tenantId: string; id: string; ticket: Buffer },
    before: Buffer | undefined,
    { state, browser }: SignInProof,
    terms: object,
  ): Promise<boolean> {
    const opening = { tenantId, id, ticket, before, state, browser, terms };
    return (await this.database.tenantQuery(tenantId, OPEN, OPEN.values({ opening }))).length > 0;
  }

  /** The sign-in of an answer of the authorization server, once. Undefined: this browser does not wait for it. */
  async take(
    tenantId: string,
    id: string,
    { state, browser }: SignInProof,
  ): Promise<OAuthSignIn | undefined> {
    const rows = await this.database.tenantQuery<SignInRow>(tenantId, TAKE, [tenantId, id, state, browser]);
    return rows.map((row) => signInOf(tenantId, row))[0];
  }

  /**
   * The sign-in is done: the connection replaces an earlier one. Nothing is left of the sign-ins for it.
   * @param detail facts for the audit log
   * @param continued the task that a message of the caller is about to continue
   */
  async finish(
    signIn: DoneSignIn,
    issuer: string,
    tokens: NewTokens,
    by: Actor,
    { detail = {}, continued = null }: { detail?: object; continued?: string | null } = {},
  ): Promise<void> {
    const { tenantId, id, resource } = signIn;
    const caller = signIn.caller ?? '';
    await this.catalog.change(tenantId, async (prisma, record) => {
      const made = { ...signIn, ...tokens, issuer };
      await transactionOf(prisma).query(CONNECT, CONNECT.values({ made }));
      await transactionOf(prisma).query(WAKE, [tenantId, resource, caller, continued]);
      await record(recordOf('connection.sign-in', id, { resource, caller }, by, { issuer, ...detail }));
    });
  }

  async findClient(tenantId: string, issuer: string): Promise<SealedOAuthClient | undefined> {
    return (await this.database.tenantQuery<SealedOAuthClient>(tenantId, FIND_CLIENT, [tenantId, issuer]))[0];
  }

  /** A client that another process has stored meanwhile stays: read it again. */
  async putClient(tenantId: string, issuer: string, client: SealedOAuthClient): Promise<void> {
    const made = { ...client, tenantId, issuer };
    await this.database.tenantQuery(tenantId, PUT_CLIENT, PUT_CLIENT.values({ made }));
  }

  async forgetClient(tenantId: string, issuer: string): Promise<void> {
    await this.database.tenantQuery(tenantId, FORGET_CLIENT, [tenantId, issuer]);
  }
}

const signInOf = (tenantId: string, row: SignInRow): OAuthSignIn => ({
  tenantId,
  id: row.id,
  resource: row.resource,
  caller: row.caller === '' ? null : row.caller,
  agent: row.agent,
  settings: row.settings,
  taskId: row.task_id,
  terms: row.terms,
  createdBy: row.created_by,
  expiresAt: row.expires_at,
});
