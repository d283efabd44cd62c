import {
  type Agent,
  type CallContext,
  type Codec,
  type DecodedCall,
  type Envelope,
  type RpcPath,
  OPERATIONS,
  ProtocolError,
  assertAccept,
  assertEnvelopeId,
  assertParts,
  decodeEnvelope,
  isStreaming,
  profileFor,
  rulesFor,
} from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { hostCallerOf, requireScope } from '../access/access.guard.js';
import { BodyReader } from '../http/body.js';
import { type ReadLease, ReadMemoryPool } from '../http/read-memory.js';
import { logContextOf } from '../http/request-log.js';
import { AgentFinder } from './agent-finder.js';
import { idempotencyKey, lastEventId, requestedVersion, traceparent } from './call-headers.js';
import { negotiateExtensions } from './extensions.js';
import type { RpcAnswer } from './rpc-answer.js';

/** A request that has passed every check, ready to be carried out. */
export interface AdmittedCall {
  operation: DecodedCall;
  context: CallContext & { memory: ReadLease };
  codec: Codec;
  /** Nobody waits for the result, only for errors (JSON-RPC 2.0 §4.1). */
  isNotification: boolean;
  /** Headers that every answer carries. */
  headers: Record<string, string>;
}

/**
 * From an HTTP request to a canonical one. Where several things are wrong, the first of these is answered: URL
 * and HTTP method (404, 405), token (401), requests per second (429), media type (415), size (413), JSON and
 * envelope (-32700, -32600), version (-32009), method (-32601), params (-32602), scope (403), agent (404), parts,
 * Last-Event-ID, Idempotency-Key (-32602),
 * extensions (-32008), and then what the operation says. The envelope comes before the version so that every
 * refusal from there on carries the caller's id; a profile may want the version right after the token.
 */
@Injectable()
export class Admission {
  constructor(
    private readonly agents: AgentFinder,
    private readonly bodies: BodyReader,
    private readonly memory: ReadMemoryPool,
  ) {}

  /** @param answer learns id, profile and family as they are read, so that a refusal comes out in their form */
  async admit(path: RpcPath, slugOrId: string | undefined, answer: RpcAnswer): Promise<AdmittedCall> {
    const { request } = answer;
    const { tenantId, tokenId, scopes } = hostCallerOf(request);
    const envelope = await this.readEnvelope(path, answer);
    const codec = codecOf(envelope, answer);
    const operation = codec.decode(envelope.method, envelope.params);
    assertAccept(answer.profile, request.headers.accept, isStreaming(operation));
    const { scopes: enough, tokenRequired, access } = OPERATIONS[operation.operation];
    requireScope(enough, scopes);
    if (tokenRequired !== undefined && request.headers.authorization === undefined) {
      throw new ProtocolError('unauthenticated', `a bearer token is required ${tokenRequired}`);
    }
    const agent = await this.agentOf(operation, slugOrId, envelope, answer);
    logContextOf(request).agent = agent.slug;
    if ('message' in operation.request) assertParts(answer.profile.parts, operation.request.message, agent);
    const after = lastEventId(request);
    const key = 'message' in operation.request ? idempotencyKey(request) : undefined;
    const extensions = negotiateExtensions(request, agent);
    return {
      operation,
      codec,
      isNotification: !envelope.hasId,
      headers: extensions.headers,
      context: {
        tenantId,
        tokenId,
        scopes,
        requestId: request.id,
        agent,
        profile: answer.profile.name,
        rules: rulesFor(answer.profile, codec),
        clientTaskId: operation.clientTaskId,
        // Of the family, not of the header: the header validates and never changes what a method does.
        version: codec.version,
        extensions: extensions.active,
        traceparent: traceparent(request),
        lastEventId: after,
        idempotencyKey: key,
        memory: this.memory.leaseFor(tenantId, answer.reply.raw, access === 'read'),
      },
    };
  }

  private async readEnvelope(path: RpcPath, answer: RpcAnswer): Promise<Envelope> {
    const { request, profile } = answer;
    if (profile.versionCheck === 'before-body') profile.resolveVersion(requestedVersion(request));
    const envelope = decodeEnvelope(await this.bodies.text(request, profile.bodyLimit));
    answer.id = envelope.id;
    answer.profile = profileFor(path, envelope.method);
    logContextOf(request).rpcMethod = envelope.method.slice(0, 64);
    assertEnvelopeId(answer.profile, envelope);
    return envelope;
  }

  private agentOf(
    call: DecodedCall,
    path: string | undefined,
    { params }: Envelope,
    { request, profile }: RpcAnswer,
  ): Promise<Agent> {
    const choice = profile.chooseAgent({ path, params, call });
    const { tenantId, hostAgent } = hostCallerOf(request);
    return this.agents.find(choice, { tenantId, profile, hostAgent }, call);
  }
}

/** The codec of the method, and with it the family in which everything from here on is answered. */
function codecOf({ method }: Envelope, answer: RpcAnswer): Codec {
  const { profile, request } = answer;
  const codec = profile.codecFor(method);
  answer.codec = codec;
  profile.resolveVersion(requestedVersion(request), method);
  if (!codec) throw ProtocolError.methodNotFound(method);
  return codec;
}
