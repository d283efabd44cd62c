import type { OperationCall, StreamItem, UnaryOperationName, UnaryOperations } from './operation.js';

/**
 * One wire family (A2A 0.3, A2A 1.0, …): pure functions between the family's JSON and the canonical model.
 * A codec knows nothing of HTTP, tenants or storage.
 */
export interface Codec {
  /** `major.minor` of the protocol generation this family belongs to. */
  readonly version: string;
  /** Whether this family has a JSON-RPC method of that name. */
  hasMethod(method: string): boolean;
  /** Decode and validate `params`. Throws `ProtocolError` naming the field and the remedy. */
  decode(method: string, params: unknown): OperationCall;
  /** The JSON of a unary result. */
  encodeResult<K extends UnaryOperationName>(operation: K, result: UnaryOperations[K]['result']): unknown;
  /** The JSON of one stream frame (what stands in the envelope's `result`). */
  encodeItem(item: StreamItem): unknown;
}
