import {
  type Agent,
  type CallContext,
  type Codec,
  type DecodedCall,
  OPERATIONS,
  type Profile,
  ProtocolError,
  SubjectToken,
  assertParts,
  requireScope,
  rulesFor,
} from '@baton/a2a';
import { callerOf, LimitsService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import type { HostCaller } from '../access/access.guard.js';
import { RequestRates } from '../access/request-rates.js';
import type { ReadLease } from '../http/read-lease.js';
import { ReadMemoryPool } from '../http/read-memory-pool.js';
import { UnstoredBodies } from '../http/unstored-bodies.js';
import { type CallRequest, type Exchange, hasToken, logContextOf } from '../http/requests.js';
import { AgentCards } from './agent-cards.js';
import {
  idempotencyKey,
  lastEventId,
  missingLabel,
  negotiateExtensions,
  traceparent,
  wantedLabel,
} from './call-headers.js';
import { AgentFinder } from './agent-finder.js';

/** A call that a protocol binding has decoded. */
export interface DecodedRequest {
  readonly profile: Profile;
  readonly codec: Codec;
  readonly call: DecodedCall;
  /** The agent as the path, or what stands for it, names it. */
  readonly pathAgent: string | undefined;
  /** The parameters as they were sent; some profiles find the name of the agent there. */
  readonly params: unknown;
  /** The trace context of the caller, where the message itself may have one. The header comes first. */
  readonly traceparent?: string | undefined;
  /** Replaces the `Idempotency-Key` of the request where the message is sent again. */
  readonly retryKey?: string | undefined;
}

/** Who calls what. It is complete when it is made, and nothing changes it afterwards. */
export type RequestContext = Readonly<CallContext> & { readonly memory: ReadLease };

/** A call that has passed every check. */
export interface ResolvedCall {
  readonly context: RequestContext;
  /** Headers that every answer carries. @param activated extensions that the agent has activated */
  readonly headers: (activated?: readonly string[]) => Record<string, string>;
}

/** The token of the caller, if an issuer has made it. A token of Baton is none: it must not reach other servers. */
function subjectOf({ issuer }: HostCaller, { headers }: CallRequest): SubjectToken | undefined {
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  return issuer && token !== undefined ? new SubjectToken(issuer.url, token) : undefined;
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
    private readonly unstored: UnstoredBodies,
    private readonly limits: LimitsService,
    private readonly rates: RequestRates,
    private readonly cards: AgentCards,
  ) {}

  /** Throws ProtocolError. */
  async resolve(
    { profile, codec, call, pathAgent, params, traceparent: inMessage, retryKey }: DecodedRequest,
    exchange: Exchange,
  ): Promise<ResolvedCall> {
    const { request } = exchange;
    const caller: HostCaller = callerOf(request);
    const { tenantId, principal, scopes, agents, hostAgent } = caller;
    const { scopes: enough, tokenRequired, access } = OPERATIONS[call.operation];
    // The guard has checked it before the body came, which may be long ago.
    await this.limits.assertActive(tenantId);
    requireScope(enough, scopes);
    if (tokenRequired !== undefined && !hasToken(request)) {
      throw new ProtocolError('unauthenticated', `a bearer token is required ${tokenRequired}`);
    }
    const choice = profile.chooseAgent({ path: pathAgent, params, call });
    const scope = { tenantId, principal, scopes, agents, profile, hostAgent };
    let agent = await this.agents.find(choice, scope, call);
    logContextOf(request).agent = agent.slug;
    if ('message' in call.request) assertParts(profile.parts, call.request.message, agent);
    const after = lastEventId(request);
    const sentKey = 'message' in call.request ? idempotencyKey(request) : undefined;
    const wanted = 'message' in call.request ? wantedLabel(request, scopes) : undefined;
    if (wanted && missingLabel(wanted, agent)) {
      agent = await this.agents.findAnew(choice, scope, call);
      const missing = missingLabel(wanted, agent);
      if (missing) throw missing;
    }
    const extensions = negotiateExtensions(request, agent);
    const isRoot = pathAgent === undefined && agent.slug === hostAgent;
    if ('message' in call.request) await this.rates.countMessage(caller);
    return {
      headers: extensions.headers,
      context: {
        tenantId,
        principal,
        issuerId: caller.issuer?.id,
        ...('message' in call.request && { subject: subjectOf(caller, request) }),
        scopes,
        agents,
        access,
        requestId: request.id,
        address: request.ip,
        agent,
        profile: profile.name,
        rules: rulesFor(profile, codec),
        clientTaskId: call.clientTaskId,
        // The version of the codec, not of the header: the header validates and never changes what a method does.
        version: codec.version,
        extensions: extensions.active,
        traceparent: traceparent(request, inMessage),
        lastEventId: after,
        label: wanted?.label,
        idempotencyKey: sentKey === undefined ? undefined : (retryKey ?? sentKey),
        ...(call.operation === 'getExtendedAgentCard' && {
          buildCard: (shown: Agent) => this.cards.build(shown, request, isRoot),
        }),
        memory: this.memory.leaseFor(exchange, access),
        onStored: () => this.unstored.release(request),
      },
    };
  }
}
