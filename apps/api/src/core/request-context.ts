import {
  type CallContext,
  type Codec,
  type DecodedCall,
  OPERATIONS,
  type Profile,
  ProtocolError,
  assertParts,
  rulesFor,
} from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hostCallerOf, requireScope } from '../access/access.guard.js';
import { type ReadLease, ReadMemoryPool } from '../http/read-memory.js';
import { logContextOf } from '../http/request-log.js';
import { AgentFinder } from './agent-finder.js';
import { idempotencyKey, lastEventId, negotiateExtensions, traceparent } from './call-headers.js';

/** A request and the reply to it. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** A call that a protocol binding has decoded. */
export interface DecodedRequest {
  readonly profile: Profile;
  readonly codec: Codec;
  readonly call: DecodedCall;
  /** The agent as the path names it. */
  readonly pathAgent: string | undefined;
  /** The parameters as they were sent; some profiles find the name of the agent there. */
  readonly params: unknown;
}

/** Who calls what. It is complete when it is made, and nothing changes it afterwards. */
export type RequestContext = Readonly<CallContext> & { readonly memory: ReadLease };

/** A call that has passed every check. */
export interface ResolvedCall {
  readonly context: RequestContext;
  /** Headers that every answer carries. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Resolves a decoded call: its caller's rights, its agent, and what its headers say. Where several things are wrong, the
 * first of these is answered: scope (403), token (401), agent (404), parts, Last-Event-ID, Idempotency-Key (-32602),
 * extensions (-32008). What comes before is checked by the guard and by the binding, what comes after by the operation.
 */
@Injectable()
export class CallResolver {
  constructor(
    private readonly agents: AgentFinder,
    private readonly memory: ReadMemoryPool,
  ) {}

  /** Throws ProtocolError. */
  async resolve(
    { profile, codec, call, pathAgent, params }: DecodedRequest,
    { request, reply }: Exchange,
  ): Promise<ResolvedCall> {
    const { tenantId, tokenId, scopes, hostAgent } = hostCallerOf(request);
    const { scopes: enough, tokenRequired, access } = OPERATIONS[call.operation];
    requireScope(enough, scopes);
    if (tokenRequired !== undefined && request.headers.authorization === undefined) {
      throw new ProtocolError('unauthenticated', `a bearer token is required ${tokenRequired}`);
    }
    const choice = profile.chooseAgent({ path: pathAgent, params, call });
    const agent = await this.agents.find(choice, { tenantId, profile, hostAgent }, call);
    logContextOf(request).agent = agent.slug;
    if ('message' in call.request) assertParts(profile.parts, call.request.message, agent);
    const after = lastEventId(request);
    const key = 'message' in call.request ? idempotencyKey(request) : undefined;
    const extensions = negotiateExtensions(request, agent);
    return {
      headers: extensions.headers,
      context: {
        tenantId,
        tokenId,
        scopes,
        requestId: request.id,
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
        memory: this.memory.leaseFor(tenantId, reply.raw, access === 'read'),
      },
    };
  }
}
