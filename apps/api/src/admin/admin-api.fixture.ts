import { loadEnvironment } from '@baton/config';
import { OperatorTokens } from '@baton/identity';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { ApiModule } from '../api.module.js';
import { createFastifyAdapter, listen, prepareApi, shutDown } from '../server.js';

export type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

export let database: TestDatabase;
export let app: NestFastifyApplication;
export let url: string;
export let managementUrl: string;
/** The token of an operator. */
export let operator: string;
/** The master key of the database. */
export const MASTER_KEY = randomBytes(32).toString('base64');
/** Its key in the audit log. */
export let operatorKey: string;

beforeAll(async () => {
  database = await createDatabase();
  const environment = loadEnvironment({
    DATABASE_URL: database.url,
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'silent',
    API_GRACE_MS: '200',
    MANAGEMENT_PORT: '0',
    UNAUTHENTICATED_PER_SECOND: '0',
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: MASTER_KEY,
  });
  app = await NestFactory.create(ApiModule.use(environment), createFastifyAdapter(environment), {
    bodyParser: false,
    logger: false,
    abortOnError: false,
  });
  prepareApi(app);
  const listening = await listen(app);
  url = listening.url;
  managementUrl = listening.managementUrl!;
  const { secret, token } = await app.get(OperatorTokens, { strict: false }).issue('ops', null);
  operator = secret;
  operatorKey = `operator:${token.id}`;
});
afterAll(async () => {
  await shutDown(app);
  await database.drop();
});

/** A request of an operator. @param path below `/v1/admin` */
export async function ask(method: string, path: string, body?: object, token = operator) {
  const response = await fetch(`${managementUrl}/v1/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, json: (isJson ? JSON.parse(text) : {}) as Json };
}
