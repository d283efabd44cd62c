import type { CallContext } from './call-context.js';
import {
  type DecodedCall,
  type OperationCall,
  type Results,
  type StreamItem,
  type UnaryOperationName,
  historyLengthOf,
} from './operation.js';
import type { OperationRules } from './operation-rules.js';

/** What an answer may have to say besides its result. */
export interface AnswerContext {
  /** Id of the agent that answers. */
  agentId: string;
  /** The id the caller chose for its task, where the family lets callers do so. */
  clientTaskId?: string;
  /** How much history the caller asked for; unset = all. */
  historyLength?: number;
  /** Sequence after which a resumed stream goes on; 0 or unset = from its beginning. */
  after?: number;
}

/** One frame of a stream. Whoever has read it goes on after `sequence`. */
export interface Frame {
  sequence: number;
  /** The JSON of the frame: what stands in the envelope's `result`, or the bare data without an envelope. */
  result: unknown;
}

/** Encodes the items of one stream, in order; it may remember what it has seen. */
export type StreamEncoder = (item: StreamItem) => Frame[];

/** How the frames of a stream are written as server-sent events. */
export interface Framing {
  /** The `event:` line; unset = none. */
  event?: string;
  /** Whether a frame is a JSON-RPC envelope, or the bare result. An error always is an envelope. */
  enveloped: boolean;
  /** The `event:` line of the error that ends a stream which fails. */
  errorEvent?: string;
}

/**
 * One wire family (A2A 0.1, 0.3, 1.0) as one profile speaks it: pure functions between the family's JSON and
 * the canonical model. A codec knows nothing of HTTP, tenants or storage.
 */
export interface Codec {
  /** `major.minor` of the protocol generation this family belongs to. */
  readonly version: string;
  readonly framing: Framing;
  /** What operations do differently when they are called through this codec. */
  readonly rules: Partial<OperationRules>;
  /** Every JSON-RPC method of this family. */
  readonly methods: readonly string[];
  /** Whether this family has a JSON-RPC method of that name. */
  hasMethod(method: string): boolean;
  /** Decode and validate `params`. Throws `ProtocolError` naming the field and the remedy. */
  decode(method: string, params: unknown): DecodedCall;
  /** The JSON of a unary result. */
  encodeResult<K extends UnaryOperationName>(
    operation: K,
    result: Results[K],
    context?: AnswerContext,
  ): unknown;
  /** The encoder of one stream. */
  streamEncoder(context?: AnswerContext): StreamEncoder;
  /** The JSON of one item by itself, as the family writes it, without the profile's own shape. */
  encodeItem(item: StreamItem): unknown;
}

/** What the answer to a call may have to say. */
export const answerContextOf = (
  { agent, clientTaskId, lastEventId }: Pick<CallContext, 'agent' | 'clientTaskId' | 'lastEventId'>,
  call: OperationCall,
): AnswerContext => ({
  agentId: agent.id,
  clientTaskId,
  historyLength: historyLengthOf(call),
  after: lastEventId,
});
