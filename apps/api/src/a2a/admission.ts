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
import { Environment } from '@baton/config';
import { callerOf, LimitsService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { agentOfHost } from '../hosts/host.guard.js';
import type { BodyLimit } from '../http/read-body.js';
import { type ReadLease, ReadMemoryPool } from '../http/read-memory.js';
import { readJsonText } from '../http/read-json-text.js';
import { logContextOf } from '../http/log-context.js';
import { AgentFinder } from './agent-finder.js';
import { idempotencyKey, lastEventId, requestedVersion, traceparent } from './call-headers.js';
import { negotiateExtensions } from './extensions.js';
import type { RpcAnswer } from './rpc-answer.js';
import { requireScopeFor, requireTokenFor } from './scopes.js';

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
    private readonly limits: LimitsService,
    private readonly memory: ReadMemoryPool,
    private readonly environment: Environment,
  ) {}

  /** @param answer learns id, profile and family as they are read, so that a refusal comes out in their form */
  async admit(path: RpcPath, slugOrId: string | undefined, answer: RpcAnswer): Promise<AdmittedCall> {
    const { request } = answer;
    const { tenantId, tokenId, scopes } = callerOf(request);
    const notes = logContextOf(request);
    notes.agent = slugOrId;
    const envelope = await this.readEnvelope(path, answer);
    const codec = codecOf(envelope, answer);
    const operation = codec.decode(envelope.method, envelope.params);
    assertAccept(answer.profile, request.headers.accept, isStreaming(operation));
    requireScopeFor(operation.operation, scopes);
    requireTokenFor(operation.operation, request);
    const agent = await this.agentOf(operation, slugOrId, envelope, answer);
    notes.agent = agent.slug;
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
        memory: this.memory.leaseFor(
          tenantId,
          answer.reply.raw,
          OPERATIONS[operation.operation].access === 'read',
        ),
      },
    };
  }

  private async readEnvelope(path: RpcPath, answer: RpcAnswer): Promise<Envelope> {
    const { request, profile } = answer;
    if (profile.versionCheck === 'before-body') profile.resolveVersion(requestedVersion(request));
    const envelope = decodeEnvelope(await readJsonText(request.raw, await this.bodyLimit(answer)));
    answer.id = envelope.id;
    answer.profile = profileFor(path, envelope.method);
    logContextOf(request).rpcMethod = envelope.method.slice(0, 64);
    assertEnvelopeId(answer.profile, envelope);
    return envelope;
  }

  /** The profile's limit or the tenant's, whichever is smaller. */
  private async bodyLimit({ request, profile }: RpcAnswer): Promise<BodyLimit> {
    const { bodyLimitBytes, smallBodyLimitBytes, requestTimeoutMs: ms } = this.environment;
    const bytes = profile.bodyLimit === 'small' ? smallBodyLimitBytes : bodyLimitBytes;
    const { bodyBytes } = await this.limits.of(callerOf(request).tenantId);
    return bodyBytes !== null && bodyBytes < bytes
      ? { bytes: bodyBytes, ms, name: 'bodyBytes' }
      : { bytes, ms };
  }

  private agentOf(
    call: DecodedCall,
    path: string | undefined,
    { params }: Envelope,
    { request, profile }: RpcAnswer,
  ): Promise<Agent> {
    const choice = profile.chooseAgent({ path, params, call });
    const { tenantId } = callerOf(request);
    return this.agents.find(choice, { tenantId, profile, hostAgent: agentOfHost(request) }, call);
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
