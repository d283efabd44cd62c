import type { TenantPaths, TenantSchemas } from '@baton/contract';
import { answerOf, listAll, type TargetOptions, type TenantApi, tenantApi } from './api.js';
import type { Cli } from './cli.js';
import { NotFoundError } from './not-found-error.js';
import { OperatorError } from './operator-error.js';
import { type OperatorApi, refusalOf, withOperatorApi } from './operator/operator-api.js';
import { RefusedError } from './refused-error.js';

type Token = TenantSchemas['Token'];
type TokenBody = TenantPaths['/v1/tokens']['post']['requestBody']['content']['application/json'];
type RotationBody =
  TenantPaths['/v1/tokens/{id}/rotate']['post']['requestBody']['content']['application/json'];

/** The tokens of a tenant. A token is named by its id or prefix. Every error is an OperatorError. */
export interface TokensClient {
  create(token: TokenBody): Promise<TenantSchemas['IssuedToken']>;
  list(): Promise<Token[]>;
  show(name: string): Promise<TenantSchemas['TokenWithWork']>;
  rotate(name: string, rotation: RotationBody): Promise<TenantSchemas['IssuedToken']>;
  /** @param stop also cancel its tasks and pause its schedules */
  revoke(name: string, stop: boolean): Promise<TenantSchemas['RevokedToken']>;
}

/** Whose tokens: with `tenant` as the operator, else those of the tenant of `--token`. */
export type TokenOptions = TargetOptions & { tenant?: string };

/** Do `work` with the tokens of one tenant. */
export async function withTokens<T>(
  cli: Cli,
  { tenant, ...options }: TokenOptions,
  work: (tokens: TokensClient) => Promise<T>,
): Promise<T> {
  const done =
    tenant === undefined
      ? work(ownTokens(tenantApi(cli, options)))
      : withOperatorApi(cli, options, (api) => work(tokensOf(api, tenant)));
  return done.catch(explainRefusal(tenant));
}

/** `/v1/tokens`, which takes only ids of tokens, no names. */
function ownTokens(api: TenantApi): TokensClient {
  const list = (): Promise<Token[]> =>
    listAll(
      (query) => api.GET('/v1/tokens', { params: { query } }),
      ({ tokens }) => tokens,
    );
  const pathOf = async (name: string): Promise<{ id: string }> => {
    const named = (await list()).find(
      ({ id, prefix, previous_prefix: before }) => id === name || prefix === name || before === name,
    );
    if (!named) throw noSuchToken();
    return { id: named.id };
  };
  return {
    list,
    create: (body) => answerOf(api.POST('/v1/tokens', { body })),
    show: async (name) => answerOf(api.GET('/v1/tokens/{id}', { params: { path: await pathOf(name) } })),
    rotate: async (name, body) =>
      answerOf(api.POST('/v1/tokens/{id}/rotate', { params: { path: await pathOf(name) }, body })),
    revoke: async (name, stop) =>
      answerOf(api.DELETE('/v1/tokens/{id}', { params: { path: await pathOf(name), query: { stop } } })),
  };
}

/** `/v1/admin/tenants/{tenant}/tokens` */
function tokensOf(api: OperatorApi, tenant: string): TokensClient {
  const of = (token: string) => ({ path: { tenant, token } });
  return {
    list: () =>
      listAll(
        (query) => api.GET('/v1/admin/tenants/{tenant}/tokens', { params: { path: { tenant }, query } }),
        ({ tokens }) => tokens,
      ),
    create: (body) =>
      answerOf(api.POST('/v1/admin/tenants/{tenant}/tokens', { params: { path: { tenant } }, body })),
    show: (name) => answerOf(api.GET('/v1/admin/tenants/{tenant}/tokens/{token}', { params: of(name) })),
    rotate: (name, body) =>
      answerOf(api.POST('/v1/admin/tenants/{tenant}/tokens/{token}/rotate', { params: of(name), body })),
    revoke: (name, stop) =>
      answerOf(
        api.DELETE('/v1/admin/tenants/{tenant}/tokens/{token}', { params: { ...of(name), query: { stop } } }),
      ),
  };
}

/** Says what to do, in the words of the command. */
const explainRefusal =
  (tenant?: string) =>
  (error: unknown): never => {
    const { status, reason = '' } = refusalOf(error) ?? {};
    if (status === 404 && error instanceof RefusedError && /no such token/.test(reason))
      throw noSuchToken(tenant);
    if (reason.startsWith('expires_at: is required')) {
      throw new OperatorError('The token has expired. Renew it with --expires <time>.');
    }
    if (reason.startsWith('the token was revoked')) {
      throw new OperatorError('The token was revoked: create another.');
    }
    throw error;
  };

/** The message does not repeat the argument: it may be a whole secret. */
const noSuchToken = (tenant?: string): OperatorError => {
  const option = tenant === undefined ? '' : ` --tenant ${tenant}`;
  return new NotFoundError(`There is no such token: npx baton tokens list${option} shows ids and prefixes.`);
};
