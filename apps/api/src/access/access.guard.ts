import { messageOf } from '@baton/telemetry';
import { ProtocolError, requireScope, type Scope } from '@baton/a2a';
import { COMMAND_LINE, Environment } from '@baton/config';
import type { OperatorRole } from '@baton/database';
import {
  AuditLog,
  type Caller,
  callerOf,
  LimitsService,
  OperatorTokens,
  RefusedTokenError,
} from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type CallRequest, hasToken, logContextOf } from '../http/requests.js';
import { AuthorizationServers } from './authorization-servers.js';
import { actorOf, operatorActorOf, operatorOf, type OperatorRequest } from './actor.js';
import { guestOf } from './guests.js';
import { HostBindings } from './host-bindings.js';
import { RequestRates } from './request-rates.js';
import { UnauthenticatedLimit } from './unauthenticated-limit.js';
import { BearerGuard } from './bearer.guard.js';
import {
  type Access,
  SCOPES,
  MORE_SCOPES,
  ACCESS,
  ROLES,
  PROTECTED_RESOURCE,
  COUNTED,
} from './route-access.js';

/** What a route declares. */
interface RouteRules {
  access: Access | undefined;
  isCounted: boolean;
  /** Roles of operators, besides `full`. */
  roles: readonly OperatorRole[];
  /** The token needs one of each. */
  scopes: readonly (readonly Scope[])[];
  isProtectedResource: boolean;
}

/** The caller, and the binding of the host name. */
export interface HostCaller extends Caller {
  /** Slug of the agent that the host is bound to, if the host belongs to the caller's tenant. */
  readonly hostAgent?: string;
  /** Set for guests. Guests of one address have one budget: anyone can make the secrets by which guests differ. */
  readonly guestBudget?: string;
}

/**
 * Stands before every route, and acts before the body is read. It limits requests without a valid token (429), finds the caller
 * (401), refuses callers of a suspended tenant (403), counts the request for the caller's tenant (429), and checks the scopes that
 * the route declares (403).
 */
@Injectable()
export class AccessGuard extends BearerGuard {
  /** By controller and handler: controllers of one class have their handlers in common. */
  private readonly rules = new Map<object, Map<object, RouteRules>>();

  constructor(
    private readonly reflector: Reflector,
    private readonly hosts: HostBindings,
    private readonly limits: LimitsService,
    private readonly rates: RequestRates,
    private readonly environment: Environment,
    private readonly unauthenticated: UnauthenticatedLimit,
    private readonly audit: AuditLog,
    private readonly agents: AgentDirectory,
    private readonly operators: OperatorTokens,
    private readonly servers: AuthorizationServers,
  ) {
    super();
  }

  /** Throws `unauthenticated`, `tenant-suspended`, `limit-exceeded` or `forbidden`. */
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const { access, isCounted, roles, scopes: enough, isProtectedResource } = this.rulesOf(context);
    const request = context.switchToHttp().getRequest<CallRequest & { user?: HostCaller }>();
    if (access === 'public') {
      if (isCounted) await this.unauthenticated.admit(request);
      return true;
    }
    const check = await this.unauthenticated.begin(request);
    const refuse = async (error: Error): Promise<void> => {
      check.refuse();
      this.recordRefusal(request, error);
      if (isProtectedResource) await this.explainSignIn(context);
    };
    try {
      if (access === 'operator') await this.authenticateOperator(request);
      else if (access === undefined || hasToken(request)) await super.canActivate(context);
      else await this.authenticateGuest(access, request, context);
    } catch (error) {
      if (error instanceof ProtocolError && error.kind === 'unauthenticated') await refuse(error);
      else await check.forgive();
      throw error;
    }
    // Without a token: it stays counted.
    if (!request.user && access !== 'operator') return true;
    await check.accept();
    if (access === 'operator') this.assertRole(roles, request);
    if (!request.user) return true;
    const { tenantId, scopes } = request.user;
    const log = logContextOf(request);
    log.tenantId = tenantId;
    log.agent = (request.params as { agent?: string }).agent;
    log.tenant = await this.limits.slugOf(tenantId);
    await this.limits.assertActive(tenantId);
    await this.rates.countRequest(request.user);
    if (access === 'guests' && hasToken(request) && !(await this.bindHost(request, request.user))) {
      const error = new ProtocolError('unauthenticated', 'the token is not valid for this host');
      await refuse(error);
      throw error;
    }
    for (const some of enough) this.assertScope(some, scopes, request);
    const { agents } = request.user;
    if (agents) {
      request.user = { ...request.user, agents: await this.agents.allowed(tenantId, agents.slugs) };
    }
    return true;
  }

  /** Adds to the challenge where the metadata of the resource are. */
  private async explainSignIn(context: ExecutionContext): Promise<void> {
    const http = context.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const challenge = await this.servers.challenge(http.getRequest<FastifyRequest>());
    if (challenge === '') return;
    const so = reply.getHeader('www-authenticate');
    reply.header('www-authenticate', `${typeof so === 'string' ? so : 'Bearer realm="baton"'}${challenge}`);
  }

  /** The declarations of each route. Reading them takes as long as the rest of the guard, so they are kept. */
  private rulesOf(context: ExecutionContext): RouteRules {
    const [handler, controller] = [context.getHandler(), context.getClass()];
    const known = this.rules.get(controller)?.get(handler);
    if (known) return known;
    const route = [handler, controller];
    const scopes = [SCOPES, MORE_SCOPES].flatMap((key) => {
      const enough = this.reflector.getAllAndOverride<readonly Scope[] | undefined>(key, route);
      return enough ? [enough] : [];
    });
    const access = this.reflector.getAllAndOverride<Access | undefined>(ACCESS, route);
    const roles = this.reflector.getAllAndOverride<readonly OperatorRole[] | undefined>(ROLES, route) ?? [];
    const isProtectedResource =
      this.reflector.getAllAndOverride<true | undefined>(PROTECTED_RESOURCE, route) ?? false;
    const isCounted = this.reflector.getAllAndOverride<true | undefined>(COUNTED, route) ?? false;
    const rules = { access, isCounted, roles, scopes, isProtectedResource };
    const ofController = this.rules.get(controller) ?? new Map<object, RouteRules>();
    this.rules.set(controller, ofController.set(handler, rules));
    return rules;
  }

  /**
   * A refused token is counted and recorded in the audit log: in that of its tenant if it was valid once. A request without a
   * token is not a sign-in attempt.
   */
  private recordRefusal(request: CallRequest, error: Error): void {
    if (!hasToken(request)) return;
    const { tenantId, principal = NOBODY } = (error instanceof RefusedTokenError && error.holder) || {};
    const by = { ...principal, address: request.ip, requestId: request.id };
    const refused = { action: 'signin.refused', by, route: routeOf(request), reason: error.message } as const;
    this.audit.refuse({ ...refused, ...(tenantId !== undefined && { tenantId }) });
  }

  private assertScope(enough: readonly Scope[], scopes: readonly Scope[], request: CallRequest): void {
    try {
      requireScope(enough, scopes);
    } catch (error) {
      const { tenantId } = callerOf(request);
      const reason = messageOf(error);
      const refused = { action: 'access.refused', tenantId, route: routeOf(request), reason } as const;
      this.audit.refuse({ ...refused, by: actorOf(request) });
      throw error;
    }
  }

  private async authenticateOperator(request: OperatorRequest): Promise<void> {
    const [, secret] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    request.operator = secret === undefined ? undefined : await this.operators.verify(secret);
    if (request.operator) return;
    throw new ProtocolError(
      'unauthenticated',
      `a token of an operator is required: ${COMMAND_LINE} operator-tokens create makes one`,
    );
  }

  private assertRole(roles: readonly OperatorRole[], request: OperatorRequest): void {
    const { role } = operatorOf(request);
    if (role === 'full' || roles.includes(role)) return;
    const enough = [...roles, 'full'].map((one) => `"${one}"`).join(' or ');
    const reason = `the token of the operator has the role "${role}", and this needs ${enough}`;
    this.audit.refuse({
      action: 'access.refused',
      route: routeOf(request),
      reason,
      by: operatorActorOf(request),
    });
    throw new ProtocolError('forbidden', reason);
  }

  /** A caller without a token is a guest of a public host. */
  private async authenticateGuest(
    access: 'optional-token' | 'guests',
    request: CallRequest & { user?: HostCaller },
    context: ExecutionContext,
  ): Promise<void> {
    const host = await this.hosts.find(request);
    if (host?.public) {
      const principal = guestOf(request, host, this.environment.masterKey);
      const { key: guestBudget } = guestOf({ headers: {}, ip: request.ip }, host, this.environment.masterKey);
      const { tenantId, agent: hostAgent } = host;
      request.user = { tenantId, principal, scopes: GUEST_SCOPES, guestBudget, hostAgent };
    } else if (access === 'guests') await super.canActivate(context);
  }

  /**
   * Gives the caller the agent of its host, after the request has counted: a caller names any host, and Postgres is asked for it.
   * @returns whether the token is valid for the host
   */
  private async bindHost(request: CallRequest & { user?: HostCaller }, caller: HostCaller): Promise<boolean> {
    const host = await this.hosts.find(request);
    if (host?.tenantId !== caller.tenantId) return !host || host.public;
    request.user = { ...caller, hostAgent: host.agent };
    return true;
  }
}

const NOBODY = { kind: 'unknown', key: 'unknown' } as const;

const routeOf = ({ method, routeOptions }: CallRequest): string => `${method} ${routeOptions.url ?? ''}`;

/** What a caller without a token may do, for the tenant of the host. It reaches only its own tasks. */
const GUEST_SCOPES: readonly Scope[] = ['agents:call'];
