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
import { requestedVersion } from '../core/call-headers.js';
import type { Exchange } from '../core/request-context.js';
import { setErrorHeaders } from '../http/errors.js';
import { logContextOf } from '../http/request-log.js';

const JSON_TYPE = 'application/json; charset=utf-8';

/** What is known of a request, as far as it has been read. It decides in which form an error is answered. */
interface Known {
  readonly id: RpcId;
  /** The profile of the path, and then of the method, where several share the path. */
  readonly profile: Profile;
  /** Set when the method is known. Its version wins over the `A2A-Version` header. */
  readonly codec?: Codec | undefined;
}

/** Writes the answer to one JSON-RPC request. Immutable: `with` makes another that knows more. */
export class RpcAnswer {
  private constructor(
    readonly exchange: Exchange,
    private readonly known: Known,
  ) {}

  /** The answer to a request of which only the path is known. */
  static at(path: RpcPath, exchange: Exchange): RpcAnswer {
    return new RpcAnswer(exchange, { id: null, profile: profileFor(path) });
  }

  with(known: Partial<Known>): RpcAnswer {
    return new RpcAnswer(this.exchange, { ...this.known, ...known });
  }

  /** HTTP 200 with `result`. */
  result(result: unknown): void {
    const { reply } = this.exchange;
    reply.status(200).header('content-type', JSON_TYPE).send(this.encodeResult(result));
  }

  /** HTTP 204: a notification went well. */
  none(): void {
    this.exchange.reply.status(204).send();
  }

  /** The error with its HTTP status and headers. */
  error(failure: ProtocolError): void {
    const { reply } = this.exchange;
    const { http } = errorWire(failure.kind, this.known.profile.errors);
    setErrorHeaders(reply, failure);
    reply.status(http).header('content-type', JSON_TYPE).send(this.encodeError(failure));
  }

  /** The JSON of a result, or of an enveloped frame of a stream. */
  encodeResult(result: unknown): string {
    return JSON.stringify(encodeEnvelope(this.known.id, result));
  }

  /** The JSON of an error, also of the frame that ends a stream that failed. */
  encodeError(failure: ProtocolError): string {
    const error = encodeRpcError(failure, this.known.profile.errors, this.version());
    logContextOf(this.exchange.request).rpcError = error.code;
    const id = failure instanceof EnvelopeError ? failure.id : this.known.id;
    return JSON.stringify(encodeErrorEnvelope(id, error));
  }

  private version(): string {
    const { codec, profile } = this.known;
    if (codec) return codec.version;
    try {
      return profile.resolveVersion(requestedVersion(this.exchange.request));
    } catch {
      return '1.0';
    }
  }
}
