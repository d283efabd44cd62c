import { type Scope, TENANT_SCOPES } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { TenantStore, PLATFORM_ACTOR } from '@baton/database';
import { TokenService } from '@baton/identity';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../../test/support/index.js';
import { ApiModule } from '../../api.module.js';
import { createFastifyAdapter, listen, prepareApi, shutDown } from '../../server.js';

type Json = Record<string, unknown> & { agent: Record<string, unknown>; error: { message: string } };

let database: TestDatabase;
export let app: NestFastifyApplication;
export let url: string;
let tenants = 0;

beforeAll(async () => {
  database = await createDatabase();
  const environment = loadEnvironment({
    DATABASE_URL: database.url,
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'silent',
    API_GRACE_MS: '200',
    // Receivers of webhooks are on this machine.
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: randomBytes(32).toString('base64'),
  });
  app = await NestFactory.create(ApiModule.use(environment), createFastifyAdapter(environment), {
    bodyParser: false,
    logger: false,
    abortOnError: false,
  });
  prepareApi(app);
  ({ url } = await listen(app));
});
afterAll(async () => {
  await shutDown(app);
  await database.drop();
});

/** A statement about all tenants. */
export async function sql(text: string) {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
  const { rows } = await client.query<Record<string, unknown>>(text);
  await client.end();
  return { rows };
}

/** A tenant’s way to the API. */
export class Tenant {
  private constructor(
    readonly id: string,
    readonly slug: string,
    readonly token: string,
  ) {}

  static async create(scopes: readonly Scope[] = TENANT_SCOPES): Promise<Tenant> {
    const slug = `tenant-${String(++tenants)}`;
    const { id } = await app.get(TenantStore, { strict: false }).create(slug, PLATFORM_ACTOR);
    return new Tenant(id, slug, await tokenOf(id, scopes));
  }

  async with(...scopes: Scope[]): Promise<Tenant> {
    return new Tenant(this.id, this.slug, await tokenOf(this.id, scopes));
  }

  /** A token for which only these agents exist. */
  async only(agents: string[], ...scopes: Scope[]): Promise<Tenant> {
    return new Tenant(this.id, this.slug, await tokenOf(this.id, scopes, agents));
  }

  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(`${url}/v1/agents${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json', ...headers },
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const json = (text === '' ? {} : JSON.parse(text)) as Json;
    return { status: response.status, json, text, etag: response.headers.get('etag') ?? '' };
  }

  /** What a message to an agent is answered with, by A2A 1.0 and by 0.3. */
  async send(agent: string, version: '1.0' | '0.3' = '1.0') {
    const part = version === '1.0' ? { text: 'hi' } : { kind: 'text', text: 'hi' };
    const role = version === '1.0' ? 'ROLE_USER' : 'user';
    const message = { messageId: crypto.randomUUID(), role, parts: [part] };
    const response = await fetch(`${url}/agents/${agent}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: version === '1.0' ? 'SendMessage' : 'message/send',
        params: { message, configuration: { returnImmediately: true, blocking: false } },
      }),
    });
    return {
      status: response.status,
      json: (await response.json()) as { error?: { code: number; message: string } },
    };
  }
}

const tokenOf = async (
  tenantId: string,
  scopes: readonly Scope[],
  agents: string[] = [],
): Promise<string> => {
  const token = { tenantId, name: 'test', scopes: [...scopes], agents, expiresAt: null };
  return (await app.get(TokenService, { strict: false }).issue(token, PLATFORM_ACTOR)).secret;
};

/** A document of an agent. */
export const ECHO = { name: 'Second echo', description: 'Says it again', runtime: 'echo' };
