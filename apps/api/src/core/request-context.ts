import {
  type Agent,
  type AgentChoice,
  type CallContext,
  type Codec,
  type DecodedCall,
  OPERATIONS,
  type OperationCall,
  type Profile,
  ProtocolError,
  type Reacher,
  type Scope,
  assertParts,
  isAllowed,
  isAllowedName,
  isEnabled,
  requireScope,
  rulesFor,
  soleAgent,
} from '@baton/a2a';
import { callerOf, LimitsService } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { distance } from 'fastest-levenshtein';
import type { HostCaller } from '../access/access.guard.js';
import { RequestRates } from '../access/rate-limits.js';
import { type ReadLease, ReadMemoryPool } from '../http/read-memory.js';
import { type CallReply, type CallRequest, logContextOf } from '../http/requests.js';
import { AgentCards } from './agent-cards.js';
import { idempotencyKey, lastEventId, negotiateExtensions, traceparent } from './call-headers.js';

/** A request and the reply to it, in any protocol. */
export interface Exchange {
  readonly request: CallRequest;
  readonly reply: CallReply;
}

/** A call that a protocol binding has decoded. */
export interface DecodedRequest {
  readonly profile: Profile;
  readonly codec: Codec;
  readonly call: DecodedCall;
  /** The agent as the path, or what stands for it, names it. */
  readonly pathAgent: string | undefined;
  /** The parameters as they were sent; some profiles find the name of the agent there. */
  readonly params: unknown;
}

/** Who calls what. It is complete when it is made, and nothing changes it afterwards. */
export type RequestContext = Readonly<CallContext> & { readonly memory: ReadLease };

/** A call that has passed every check. */
export interface ResolvedCall {
  readonly context: RequestContext;
  /** Headers that every answer carries. @param activated extensions that the agent has activated */
  readonly headers: (activated?: readonly string[]) => Record<string, string>;
}

/** Who looks for an agent, and where. */
export interface AgentScope extends Reacher {
  tenantId: string;
  profile: Profile;
  /** Slug of the agent the host name is bound to. */
  hostAgent?: string;
}

/** Who looks at an agent. */
type AgentViewer = Pick<AgentScope, 'tenantId' | 'agents'> & Partial<Pick<AgentScope, 'scopes' | 'profile'>>;

@Injectable()
export class AgentFinder {
  constructor(private readonly agents: AgentDirectory) {}

  /** Throws `agent-not-found`, or `task-not-found` where the task would have named the agent. */
  async find(choice: AgentChoice, scope: AgentScope, call: OperationCall): Promise<Agent> {
    const agent = await this.choose(choice, scope);
    const { needsLiveAgent } = OPERATIONS[call.operation];
    // The tasks of a deleted agent stay readable.
    const isGone = agent.status === 'deleted' && needsLiveAgent;
    if (isGone || !isAllowed(scope.agents, agent)) {
      throw choice.by === 'name' ? await this.nameNotFound(scope, choice.name) : agentNotFound(agent.slug);
    }
    // A task that names a disabled agent stays readable, and can be canceled.
    const isReachable = isEnabled(agent) || (choice.by === 'task' && !needsLiveAgent);
    if (scope.profile.onlyEnabledAgents && !isReachable) throw agentNotFound(agent.slug);
    return agent;
  }

  private async choose(choice: AgentChoice, scope: AgentScope): Promise<Agent> {
    const { tenantId, profile, hostAgent } = scope;
    switch (choice.by) {
      case 'name': {
        const named = await this.agents.findIncludingDeleted(tenantId, choice.name);
        if (!named) throw await this.nameNotFound(scope, choice.name);
        return named;
      }
      case 'host':
        return hostAgent === undefined ? this.defaultAgent(scope) : this.kept(tenantId, hostAgent);
      case 'sole': {
        const own = await this.agents.own(tenantId);
        const known = own.filter((agent) => isAllowed(scope.agents, agent));
        const sole = soleAgent(known, await this.agents.defaultAgent(tenantId));
        return this.kept(tenantId, sole.slug);
      }
      case 'task': {
        const agent = await this.agents.ofTask(scope, profile.name, choice.taskId);
        if (!agent) throw ProtocolError.taskNotFound(choice.taskId);
        return agent;
      }
    }
  }

  /** The agent with that slug or id, if it exists for the caller. */
  async named(viewer: AgentViewer, slugOrId: string): Promise<Agent> {
    const agent = await this.agents.find(viewer.tenantId, slugOrId);
    if (!agent || !isAllowed(viewer.agents, agent)) throw await this.nameNotFound(viewer, slugOrId);
    return agent;
  }

  /**
   * The id of the agent that a list is asked for, which may be deleted: its tasks are still there.
   * @throws ProtocolError `agent-not-found`, also if the agent does not exist for the caller
   */
  async idOf({ tenantId, agents }: AgentViewer, slugOrId: string | undefined): Promise<string | undefined> {
    if (slugOrId === undefined) return undefined;
    const agent = isAllowedName(agents, slugOrId)
      ? await this.agents.findIncludingDeleted(tenantId, slugOrId)
      : undefined;
    if (!agent) throw agentNotFound(slugOrId);
    return agent.id;
  }

  /** The same for an agent that does not exist and for one that the caller may not know of, also in what it reads. */
  private async nameNotFound(viewer: AgentViewer, name: string): Promise<ProtocolError> {
    const { tenantId, agents, scopes = [], profile } = viewer;
    // Where some agents are hidden, their names are as well.
    const isTold = scopes.some((scope) => NAMING_SCOPES.has(scope)) && !profile?.onlyEnabledAgents;
    if (!isTold || name.length > MAX_SLUG_LENGTH) return agentNotFound(name);
    const slugs = await this.agents.slugs(tenantId);
    return agentNotFound(
      name,
      nearTo(
        name,
        slugs.filter((slug) => isAllowed(agents, { slug })),
      ),
    );
  }

  /** The agent of that slug or id, also one that was deleted. */
  private async kept(tenantId: string, slugOrId: string): Promise<Agent> {
    const agent = await this.agents.findIncludingDeleted(tenantId, slugOrId);
    if (!agent) throw agentNotFound(slugOrId);
    return agent;
  }

  /** The agent for calls that name none. */
  async defaultAgent({ tenantId, agents }: AgentViewer): Promise<Agent> {
    const agent = await this.agents.defaultAgent(tenantId);
    if (agent && isAllowed(agents, agent)) return agent;
    if (agent) throw agentNotFound(agent.slug);
    throw new ProtocolError('agent-not-found', "the tenant's default agent no longer exists");
  }
}

/** The same for an agent that does not exist and for another tenant's. @param near slugs that the caller may have meant */
function agentNotFound(slugOrId: string, near: readonly string[] = []): ProtocolError {
  const hint = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : '';
  return new ProtocolError('agent-not-found', `Agent not found: ${slugOrId}${hint}`, {
    metadata: { agent: slugOrId },
  });
}

/** A token with one of these scopes may list the agents, or try their names. */
const NAMING_SCOPES: ReadonlySet<Scope> = new Set(['agents:call', 'agents:read', 'admin']);

/** No slug is longer. */
const MAX_SLUG_LENGTH = 63;
const MAX_NEAR = 3;

/** The slugs in which a third of the name or less is different, the nearest first. */
function nearTo(name: string, slugs: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  const most = Math.max(1, Math.floor(name.length / 3));
  return slugs
    .map((slug) => ({ slug, typos: distance(wanted, slug) }))
    .filter(({ typos }) => typos <= most)
    .sort((a, b) => a.typos - b.typos)
    .slice(0, MAX_NEAR)
    .map(({ slug }) => slug);
}

/**
 * Resolves a decoded call: its caller's rights, its agent and its headers. If several things are wrong, the first of
 * these is answered: scope (403), token (401), agent (404), parts, Last-Event-ID, Idempotency-Key (-32602), extensions
 * (-32008). The guard and the binding check everything before these; the operation checks everything after.
 */
@Injectable()
export class CallResolver {
  constructor(
    private readonly agents: AgentFinder,
    private readonly memory: ReadMemoryPool,
    private readonly limits: LimitsService,
    private readonly rates: RequestRates,
    private readonly cards: AgentCards,
  ) {}

  /** Throws ProtocolError. */
  async resolve(
    { profile, codec, call, pathAgent, params }: DecodedRequest,
    { request, reply }: Exchange,
  ): Promise<ResolvedCall> {
    const caller: HostCaller = callerOf(request);
    const { tenantId, principal, scopes, agents, hostAgent } = caller;
    const { scopes: enough, tokenRequired, access } = OPERATIONS[call.operation];
    // The guard has checked it before the body came, which may be long ago.
    await this.limits.assertActive(tenantId);
    requireScope(enough, scopes);
    if (tokenRequired !== undefined && request.headers.authorization === undefined) {
      throw new ProtocolError('unauthenticated', `a bearer token is required ${tokenRequired}`);
    }
    const choice = profile.chooseAgent({ path: pathAgent, params, call });
    const scope = { tenantId, principal, scopes, agents, profile, hostAgent };
    const agent = await this.agents.find(choice, scope, call);
    logContextOf(request).agent = agent.slug;
    if ('message' in call.request) assertParts(profile.parts, call.request.message, agent);
    const after = lastEventId(request);
    const key = 'message' in call.request ? idempotencyKey(request) : undefined;
    const extensions = negotiateExtensions(request, agent);
    const isRoot = pathAgent === undefined && agent.slug === hostAgent;
    if ('message' in call.request) await this.rates.countMessage(caller);
    return {
      headers: extensions.headers,
      context: {
        tenantId,
        principal,
        issuerId: caller.issuer?.id,
        scopes,
        agents,
        access,
        requestId: request.id,
        address: request.ip,
        agent,
        profile: profile.name,
        rules: rulesFor(profile, codec),
        clientTaskId: call.clientTaskId,
        // Of the codec, not of the header: the header validates and never changes what a method does.
        version: codec.version,
        extensions: extensions.active,
        traceparent: traceparent(request),
        lastEventId: after,
        idempotencyKey: key,
        ...(call.operation === 'getExtendedAgentCard' && {
          buildCard: (shown: Agent) => this.cards.build(shown, request, isRoot),
        }),
        memory: this.memory.leaseFor(tenantId, reply.raw, access === 'read'),
      },
    };
  }
}
