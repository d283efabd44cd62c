import type { ErrorKind } from './errors.js';
import { ProtocolError } from './protocol-error.js';

/** An id of a JSON-RPC request; answers echo it verbatim. */
export type RpcId = string | number | null;

/** A request that is not an envelope. `id` is the caller's, as far as it could be read. */
export class EnvelopeError extends ProtocolError {
  constructor(
    kind: ErrorKind,
    message: string,
    readonly id: RpcId,
    detail: ProtocolError['detail'] = {},
  ) {
    super(kind, message, detail);
  }
}
