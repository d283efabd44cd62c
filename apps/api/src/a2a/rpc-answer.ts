import {
  type Codec,
  EnvelopeError,
  type Profile,
  type ProtocolError,
  type RpcId,
  type RpcPath,
  encodeEnvelope,
  encodeErrorEnvelope,
  encodeRpcError,
  errorWire,
  profileFor,
} from '@baton/a2a';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setErrorHeaders } from '../http/errors.js';
import { logContextOf } from '../http/request-log.js';
import { requestedVersion } from './call-headers.js';

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * The answer to one JSON-RPC request: it knows the caller's id and protocol generation as far as they have
 * been read, so that an error at any point comes out in the form the caller understands.
 */
export class RpcAnswer {
  id: RpcId = null;
  /** Set when the method is known; the family of the method wins over what the header says. */
  codec: Codec | undefined;
  /** Of the path, and then of the method, where several share the path. */
  profile: Profile;

  constructor(
    path: RpcPath,
    readonly request: FastifyRequest,
    readonly reply: FastifyReply,
  ) {
    this.profile = profileFor(path);
  }

  /** HTTP 200 with `result`. */
  result(result: unknown): void {
    this.reply.status(200).header('content-type', JSON_TYPE).send(this.encodeResult(result));
  }

  /** The JSON of a good answer, or of an enveloped frame of a stream. */
  encodeResult(result: unknown): string {
    return JSON.stringify(encodeEnvelope(this.id, result));
  }

  /** HTTP 204: a notification went well. */
  none(): void {
    this.reply.status(204).send();
  }

  /** The error with its HTTP status and headers. */
  error(failure: ProtocolError): void {
    if (failure instanceof EnvelopeError) this.id = failure.id;
    const { http } = errorWire(failure.kind, this.profile.errors);
    setErrorHeaders(this.reply, failure);
    this.reply.status(http).header('content-type', JSON_TYPE).send(this.encodeError(failure));
  }

  /** The JSON of an error answer, or of the frame that ends a stream that failed. */
  encodeError(failure: ProtocolError): string {
    const error = encodeRpcError(failure, this.profile.errors, this.family());
    logContextOf(this.request).rpcError = error.code;
    return JSON.stringify(encodeErrorEnvelope(this.id, error));
  }

  private family(): string {
    if (this.codec) return this.codec.version;
    try {
      return this.profile.resolveVersion(requestedVersion(this.request));
    } catch {
      return '1.0';
    }
  }
}
