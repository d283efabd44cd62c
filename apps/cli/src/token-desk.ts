import { ProtocolError, type Scope, stateName } from '@baton/a2a';
import { type ApiToken, OPERATOR_ACTOR, ScheduleStore, TaskStore, TaskTreeStore } from '@baton/database';
import { type IssuedToken, type NewToken, TokenService } from '@baton/identity';
import { type OpenWork, PrincipalWork, TenantTokens, TurnEnds } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import { type Cli } from './cli.js';
import { NotFoundError } from './not-found-error.js';
import { OperatorError } from './operator-error.js';
import { overAdminApi } from './operator/admin-target.js';
import { requireTenant, withDatabase, withMessaging } from './platform.js';
import { ApiClient, type TargetOptions } from './api-client.js';

/** A token as commands show it. */
export type ShownToken = Omit<ApiToken, 'tenantId'>;

/** What a token has that goes on without it. */
export interface RunningWork {
  tasks: { id: string; agentId: string; state: string }[];
  hasMore: boolean;
  schedules: { id: string; name: string; agent: string }[];
}

/** A revoked token, and what became of its work. */
export interface RevokedToken {
  token: ShownToken;
  running: RunningWork;
  stopped?: { canceledTasks: number; pausedSchedules: number };
}

/** What becomes of a token's secret. */
export interface Rotation {
  overlapMs: number;
  /** Unset: as before. */
  expiresAt?: Date;
}

/** The tokens of a tenant, for its operator or for the tenant itself. A token is named by its id or prefix. */
export interface TokenDesk {
  create(token: Omit<NewToken, 'tenantId'>): Promise<{ secret: string; token: ShownToken }>;
  list(): Promise<ShownToken[]>;
  show(name: string): Promise<{ token: ShownToken; running: RunningWork }>;
  rotate(name: string, rotation: Rotation): Promise<{ secret: string; token: ShownToken }>;
  revoke(name: string, stop: boolean): Promise<RevokedToken>;
}

/**
 * Where the tokens are: with `tenant` the operator's way, over the API of operators or on the database; else over HTTP with a
 * token of the tenant.
 */
export type DeskOptions = TargetOptions & { tenant?: string };

/** Do `work` with the tokens of one tenant. */
export async function withTokenDesk<T>(
  cli: Cli,
  { tenant, ...options }: DeskOptions,
  work: (desk: TokenDesk) => Promise<T>,
): Promise<T> {
  if (tenant === undefined) return work(new HttpTokenDesk(ApiClient.of(cli, options)));
  const remote = overAdminApi(cli, { ...options, tenant }, (api) => work(new HttpTokenDesk(api, tenant)));
  if (remote) return remote;
  return withDatabase(cli.source, async ({ database, environment, tenants, tokens }) => {
    const { id } = await requireTenant(tenants, tenant);
    return withMessaging(environment, async (messaging, answers) => {
      const logger = Logger.silent();
      const quiet = { publishTask: ignore, publishControl: ignore, stopTicks: ignore, enqueuePushes: ignore };
      const channels = answers ? messaging : quiet;
      // The workers of the platform refill the slots of stopped runs.
      const slots = { ended: () => undefined, refill: () => undefined };
      const [tasks, schedules] = [new TaskStore(database), new ScheduleStore(database)];
      const turnEnds = new TurnEnds(tasks, new TaskTreeStore(database), channels, slots, logger);
      const principalWork = new PrincipalWork(tasks, schedules, turnEnds, channels, logger);
      const service = new TokenService(tokens, messaging, logger, environment);
      const tenantTokens = new TenantTokens(service, principalWork);
      const desk = new OperatorTokenDesk(id, tenant, service, tenantTokens);
      const done = await work(desk);
      if (desk.hasChanged && !answers) cli.terminal.err(untold(environment.tokenCacheMs));
      return done;
    });
  });
}

const ignore = async (): Promise<void> => undefined;

const untold = (cacheMs: number): string =>
  `Messaging does not answer: processes may use what they know of a token for another ${cacheMs / 1000} s.`;

class OperatorTokenDesk implements TokenDesk {
  /** Whether running processes know something of a token that is no longer so. */
  hasChanged = false;

  constructor(
    private readonly tenantId: string,
    private readonly slug: string,
    private readonly service: TokenService,
    private readonly tokens: TenantTokens,
  ) {}

  async create(token: Omit<NewToken, 'tenantId'>): Promise<IssuedToken> {
    return this.service.issue({ ...token, tenantId: this.tenantId }, OPERATOR_ACTOR);
  }

  async list(): Promise<ShownToken[]> {
    return this.service.list(this.tenantId);
  }

  async show(name: string): Promise<{ token: ShownToken; running: RunningWork }> {
    const token = await this.find(name);
    return { token, running: shownWork(await this.tokens.running(token)) };
  }

  async rotate(name: string, rotation: Rotation): Promise<IssuedToken> {
    const token = await this.find(name);
    const issued = await this.tokens.rotate(token, rotation, OPERATOR_ACTOR).catch((error: unknown) => {
      if (!(error instanceof ProtocolError)) throw error;
      throw new OperatorError(
        error.kind === 'invalid-params'
          ? 'The token has expired: say with --expires until when it is good again.'
          : 'The token was revoked: create another.',
      );
    });
    this.hasChanged = true;
    return issued;
  }

  async revoke(name: string, stop: boolean): Promise<RevokedToken> {
    const revoked = await this.tokens.revoke(await this.find(name), stop, OPERATOR_ACTOR);
    this.hasChanged = true;
    return { ...revoked, running: shownWork(revoked.running) };
  }

  private async find(name: string): Promise<ApiToken> {
    const token = await this.service.find(this.tenantId, name);
    if (token) return token;
    throw noSuchToken(this.slug);
  }
}

const shownWork = ({ tasks, ...work }: OpenWork): RunningWork => ({
  ...work,
  tasks: tasks.map(({ state, ...task }) => ({ ...task, state: stateName(state) })),
});

/** A token as the server writes it. */
interface WireToken {
  id: string;
  name: string;
  prefix: string;
  scopes: Scope[];
  agents: string[] | null;
  requests_per_second: number | null;
  expires_at: string | null;
  last_used_at: string | null;
  previous_prefix: string | null;
  previous_until: string | null;
  revoked_at: string | null;
  created_at: string;
}

interface WireWork {
  running: {
    tasks: { request_id: string; agent_id: string; state: string }[];
    more_tasks: boolean;
    schedules: { schedule_id: string; name: string; agent: string }[];
  };
  canceled_tasks?: number;
  paused_schedules?: number;
}

class HttpTokenDesk implements TokenDesk {
  /** Of the tokens, below `/v1`. */
  private readonly path: string;

  /** @param tenant for operators: its slug; unset = the tenant of the client's token */
  constructor(
    private readonly client: ApiClient,
    private readonly tenant?: string,
  ) {
    this.path = tenant === undefined ? 'tokens' : `admin/tenants/${encodeURIComponent(tenant)}/tokens`;
  }

  async create(token: Omit<NewToken, 'tenantId'>): Promise<{ secret: string; token: ShownToken }> {
    const { name, scopes, agents, requestsPerSecond, expiresAt } = token;
    return this.issued('POST', this.path, {
      name,
      scopes,
      ...(agents && { agents }),
      ...(requestsPerSecond !== undefined && { requests_per_second: requestsPerSecond }),
      ...(expiresAt && { expires_at: expiresAt.toISOString() }),
    });
  }

  async list(): Promise<ShownToken[]> {
    return (await this.client.list<WireToken>(this.path, 'tokens')).map(decodeToken);
  }

  async show(name: string): Promise<{ token: ShownToken; running: RunningWork }> {
    const found = await this.client.call<WireToken & WireWork>('GET', await this.pathOf(name));
    return { token: decodeToken(found), running: decodeWork(found) };
  }

  async rotate(name: string, { overlapMs, expiresAt }: Rotation) {
    return this.issued('POST', `${await this.pathOf(name)}/rotate`, {
      overlap_seconds: Math.round(overlapMs / 1000),
      ...(expiresAt && { expires_at: expiresAt.toISOString() }),
    });
  }

  async revoke(name: string, stop: boolean): Promise<RevokedToken> {
    const path = `${await this.pathOf(name)}${stop ? '?stop=true' : ''}`;
    const gone = await this.client.call<WireToken & WireWork>('DELETE', path);
    const { canceled_tasks: canceledTasks = 0, paused_schedules: pausedSchedules = 0 } = gone;
    return {
      token: decodeToken(gone),
      running: decodeWork(gone),
      ...(stop && { stopped: { canceledTasks, pausedSchedules } }),
    };
  }

  private async issued(
    method: string,
    path: string,
    body: object,
  ): Promise<{ secret: string; token: ShownToken }> {
    const { secret, ...token } = await this.client.call<WireToken & { secret: string }>(method, path, body);
    return { secret, token: decodeToken(token) };
  }

  /** The server knows tokens by their id. */
  private async pathOf(name: string): Promise<string> {
    const named = (await this.list()).find(
      ({ id, prefix, previousPrefix }) => id === name || prefix === name || previousPrefix === name,
    );
    if (!named) throw noSuchToken(this.tenant);
    return `${this.path}/${named.id}`;
  }
}

/** The message does not repeat the argument: it may be a whole secret. */
const noSuchToken = (tenant: string | undefined): OperatorError => {
  const option = tenant === undefined ? '' : ` --tenant ${tenant}`;
  return new NotFoundError(`There is no such token: npx baton tokens list${option} shows ids and prefixes.`);
};

const timeOf = (text: string | null): Date | null => (text === null ? null : new Date(text));

const decodeToken = (token: WireToken): ShownToken => ({
  id: token.id,
  name: token.name,
  prefix: token.prefix,
  scopes: token.scopes,
  agents: token.agents ?? [],
  requestsPerSecond: token.requests_per_second,
  expiresAt: timeOf(token.expires_at),
  lastUsedAt: timeOf(token.last_used_at),
  previousPrefix: token.previous_prefix,
  previousUntil: timeOf(token.previous_until),
  revokedAt: timeOf(token.revoked_at),
  createdAt: new Date(token.created_at),
});

const decodeWork = ({ running }: WireWork): RunningWork => ({
  tasks: running.tasks.map(({ request_id: id, agent_id: agentId, state }) => ({ id, agentId, state })),
  hasMore: running.more_tasks,
  schedules: running.schedules.map(({ schedule_id: id, name, agent }) => ({ id, name, agent })),
});
