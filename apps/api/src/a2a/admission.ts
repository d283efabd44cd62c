import {
  type CallContext,
  type Codec,
  type OperationCall,
  type Profile,
  ProtocolError,
  decodeEnvelope,
  rulesFor,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { notesOf } from '../http/request-notes.js';
import { lastEventId, requestedVersion, traceparent } from './call-headers.js';
import { negotiateExtensions } from './extensions.js';
import { readRpcBody } from './read-rpc-body.js';
import type { RpcAnswer } from './rpc-answer.js';
import { requireScopeFor } from './scopes.js';

/** A request that has passed every check, ready to be carried out. */
export interface AdmittedCall {
  operation: OperationCall;
  context: CallContext;
  codec: Codec;
  /** Nobody waits for the result, only for errors (JSON-RPC 2.0 §4.1). */
  isNotification: boolean;
  /** Headers that every answer carries. */
  headers: Record<string, string>;
}

/**
 * From an HTTP request to a canonical one. Where several things are wrong, the first of these is answered: URL
 * and HTTP method (404, 405), token (401), media type (415), size (413), JSON and envelope (-32700, -32600),
 * version (-32009), method (-32601), params (-32602), agent (404), scope (403), Last-Event-ID (-32602),
 * extensions (-32008), and then what the operation says. The envelope comes before the version so that every
 * refusal from there on carries the caller's id.
 */
@Injectable()
export class Admission {
  constructor(
    private readonly agents: AgentDirectory,
    private readonly environment: Environment,
  ) {}

  /** @param answer learns the id and the family as they are read, so that a refusal comes out in their form */
  async admit(profile: Profile, slugOrId: string, answer: RpcAnswer): Promise<AdmittedCall> {
    const { request } = answer;
    const notes = notesOf(request);
    const { tenantId, tokenId, scopes } = callerOf(request);
    Object.assign(notes, { tenantId, agent: slugOrId });
    const envelope = decodeEnvelope(await readRpcBody(request.raw, this.environment.bodyLimitBytes));
    const { id, method, params } = envelope;
    answer.id = id;
    notes.rpcMethod = method.slice(0, 64);
    const codec = profile.codecFor(method);
    answer.codec = codec;
    profile.resolveVersion(requestedVersion(request), method);
    if (!codec) throw ProtocolError.methodNotFound(method);
    const operation = codec.decode(method, params);
    const agent = await this.agents.find(tenantId, slugOrId);
    if (!agent) throw agentNotFound(slugOrId);
    requireScopeFor(operation.operation, scopes);
    const after = lastEventId(request);
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
        profile: profile.name,
        rules: rulesFor(profile, codec),
        clientTaskId: operation.clientTaskId,
        // Of the family, not of the header: the header validates and never changes what a method does.
        version: codec.version,
        extensions: extensions.active,
        traceparent: traceparent(request),
        lastEventId: after,
      },
    };
  }
}

/** The same for an agent that does not exist and for another tenant's. */
export function agentNotFound(slugOrId: string): ProtocolError {
  return new ProtocolError('agent-not-found', `Agent not found: ${slugOrId}`, {
    metadata: { agent: slugOrId },
  });
}
