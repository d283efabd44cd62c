import type { CallContext } from '../call-context.js';
import type { OperationRules } from '../operation-rules.js';
import { ProtocolError } from '../protocol-error.js';
import type { Task } from '../model.js';
import {
  type DecodedCall,
  OPERATIONS,
  type OperationCall,
  type OperationName,
  type Requests,
  type Results,
  type StreamItem,
  type StreamingOperationName,
  type UnaryOperationName,
  historyLengthOf,
} from '../operation.js';
import { assertWellFormed, wellFormedJson } from '../well-formed.js';
import { Fields } from './fields.js';

/** Parts of an answer besides its result. */
export interface AnswerContext {
  /** Id of the agent that answers. */
  agentId: string;
  /** The id the caller chose for its task, where the version lets callers do so. */
  clientTaskId?: string;
  /** How much history the caller asked for; unset = all. */
  historyLength?: number;
  /** Sequence after which a resumed stream continues; 0 or unset = from its beginning. */
  after?: number;
}

/** Parts of the answer to a call. */
export const answerContextOf = (
  { agent, clientTaskId, lastEventId }: Pick<CallContext, 'agent' | 'clientTaskId' | 'lastEventId'>,
  call: OperationCall,
): AnswerContext => ({
  agentId: agent.id,
  clientTaskId,
  historyLength: historyLengthOf(call),
  after: lastEventId,
});

/** One frame of a stream. A client that has read it resumes after `sequence`. */
export interface Frame {
  sequence: number;
  /** The JSON of the frame: the envelope's `result`, or the bare data without an envelope. Read it with `resultOf`. */
  result: unknown;
  /** Instead of `result`: its text, where nothing had to be encoded for this reader. */
  json?: string;
}

/** Encodes the items of one stream, in order; it may remember what it has seen. */
export type StreamEncoder = (item: StreamItem) => Frame[];

/** How the frames of a stream are written as server-sent events. */
export interface Framing {
  /** The `event:` line; unset = none. */
  event?: string;
  /** Whether a frame is a JSON-RPC envelope, or the bare result. An error is as the binding writes errors. */
  enveloped: boolean;
  /** The `event:` line of the error that ends a stream which fails. */
  errorEvent?: string;
  /**
   * How a streaming call is answered that fails before its first frame: with plain JSON (the default), or with a stream
   * of one frame for callers that read nothing else (`readsOnlyStreams`).
   */
  earlyError?: 'json' | 'frame';
  /**
   * What ends a comment. By default the end of its line: an empty line as well would end an event, and httpx-sse, which
   * the SDKs in Python read with, then hands out an empty one.
   */
  commentEnd?: '\n' | '\n\n';
}

/** The frames of HTTP+JSON; its clients recognize an error by the `event:` line. */
export const BARE_FRAMES: Framing = { enveloped: false, errorEvent: 'error' };

/**
 * One version of the protocol (A2A 0.1, 0.3, 1.0) of one profile: pure functions between the version's
 * JSON and the canonical model. A codec does not depend on HTTP, tenants or storage.
 */
export interface Codec {
  /** `major.minor` of the protocol version. */
  readonly version: string;
  readonly framing: Framing;
  /** What operations do differently when they are called through this codec. */
  readonly rules: Partial<OperationRules>;
  /** Every JSON-RPC method of this codec. */
  readonly methods: readonly string[];
  /** Whether this codec has a JSON-RPC method of that name. */
  hasMethod(method: string): boolean;
  /** Whether the method is answered with a stream. */
  isStreaming(method: string): boolean;
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
  /** The JSON of one item by itself, as the version writes it, without the profile's own shape. */
  encodeItem(item: StreamItem): unknown;
}

/** The JSON-RPC methods by which one version calls one operation. */
export interface WireMethods<K extends OperationName> {
  /** How the params of each method become the canonical request. Empty: the version lacks the operation. */
  methods: Readonly<Record<string, (params: Fields) => Requests[K]>>;
  /** Reads the id that the caller chooses for its task, where the version has such ids. */
  clientTaskId?: (params: Fields) => string;
}

/** `WireMethods` with the JSON of the result. */
export interface WireOperation<K extends UnaryOperationName> extends WireMethods<K> {
  encode: (result: Results[K], context: AnswerContext) => unknown;
}

/** How one version carries each operation. A new operation does not compile until every version has an entry. */
export type WireOperations = { [K in UnaryOperationName]: WireOperation<K> } & {
  [K in StreamingOperationName]: WireMethods<K>;
};

/** The operations of a version that has no methods for them, for an older version to start from. */
export const withoutMethods = ({ operations }: WireVersion): WireOperations =>
  // Object.fromEntries loses the type of each entry; only the methods are replaced.
  Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => [name, { ...operation, methods: {} }]),
  ) as unknown as WireOperations;

/** How a profile changes answers. It works on the canonical model, so that it is the same in every version. */
export interface Shape {
  task(task: Task, context: AnswerContext): Task;
  /** What each item of a stream becomes: none, one or several items. */
  stream(context: AnswerContext): (item: StreamItem) => StreamItem[];
}

/** One version of the protocol on the wire; a profile may give it a shape and framing of its own. */
export interface WireVersion {
  version: string;
  operations: WireOperations;
  encodeItem: (item: StreamItem) => unknown;
  /** Items are stored as this version writes them: their text goes out as it is. */
  writesAsStored?: boolean;
  /** The methods that are served; unset = all. */
  onlyMethods?: readonly string[];
  /** Looks at the params before they are read. Throws `ProtocolError`. */
  checkParams?: (params: Fields, operation: OperationName) => void;
  shape?: Shape;
  framing?: Framing;
  rules?: Partial<OperationRules>;
}

const EMPTY_CONTEXT: AnswerContext = { agentId: '' };
const UNSHAPED: Shape = { task: (task) => task, stream: () => (item) => [item] };

export function defineCodec(wire: WireVersion): Codec {
  const { version, encodeItem, shape = UNSHAPED, framing = { enveloped: true }, rules = {} } = wire;
  const encoders: { [K in UnaryOperationName]: Pick<WireOperation<K>, 'encode'> } =
    shape === UNSHAPED ? wire.operations : shapeResults(wire.operations, shape);
  const decoders = decodersOf(wire);
  const { sendStreamingMessage, subscribeToTask } = wire.operations;
  const frames = new PlainFrames(wire);
  const streaming = new Set(
    [sendStreamingMessage, subscribeToTask].flatMap(({ methods }) => Object.keys(methods)),
  );
  return {
    version,
    framing,
    rules,
    methods: [...decoders.keys()],
    hasMethod: (method) => decoders.has(method),
    isStreaming: (method) => streaming.has(method),
    decode(method, params) {
      const decode = decoders.get(method);
      if (!decode) throw ProtocolError.methodNotFound(method);
      assertWellFormed(params, 'params');
      return decode(Fields.ofParams(params));
    },
    encodeResult: (operation, result, context = EMPTY_CONTEXT) => encoders[operation].encode(result, context),
    streamEncoder(context = EMPTY_CONTEXT) {
      if (shape === UNSHAPED) return (item) => [frames.encode(item)];
      const shapeItem = shape.stream(context);
      return (item) =>
        shapeItem(item).map((shaped) => ({ sequence: shaped.sequence, result: encodeItem(shaped) }));
    },
    encodeItem,
  };
}

/** Frames of items that no profile shapes. What came as text is encoded once, for all its readers in this process. */
class PlainFrames {
  constructor(private readonly wire: Pick<WireVersion, 'encodeItem' | 'writesAsStored'>) {}

  encode(item: StreamItem): Frame {
    const { sequence, json } = item;
    if (json === undefined) return { sequence, result: this.wire.encodeItem(item) };
    const text = this.wire.writesAsStored ? json : this.textOf(item);
    return { sequence, json: text, result: undefined };
  }

  /** The item keeps its texts, and not a WeakMap here: garbage collection would visit each of its entries. */
  private textOf(item: StreamItem): string {
    for (let known = item.encoded; known; known = known.next) if (known.by === this) return known.text;
    const text = JSON.stringify(this.wire.encodeItem(item));
    item.encoded = { by: this, text, next: item.encoded };
    return text;
  }
}

type Decoder = (params: Fields) => DecodedCall;

function decodersOf({ operations, onlyMethods, checkParams }: WireVersion): ReadonlyMap<string, Decoder> {
  const decoders = new Map<string, Decoder>();
  for (const operation of Object.keys(OPERATIONS) as OperationName[]) {
    const { methods, clientTaskId }: WireMethods<OperationName> = operations[operation];
    for (const [method, read] of Object.entries(methods)) {
      if (onlyMethods && !onlyMethods.includes(method)) continue;
      decoders.set(method, (params) => {
        checkParams?.(params, operation);
        const ids = clientTaskId && { clientTaskId: clientTaskId(params) };
        // WireOperations ties the request to its operation; the loop over all of them loses the tie.
        return { operation, ...ids, request: read(params) } as DecodedCall;
      });
    }
  }
  return decoders;
}

const shapeResults = (operations: WireOperations, shape: Shape): WireOperations => ({
  ...operations,
  sendMessage: {
    ...operations.sendMessage,
    encode: (result, context) =>
      operations.sendMessage.encode(
        result.$case === 'task' ? { ...result, value: shape.task(result.value, context) } : result,
        context,
      ),
  },
  getTask: {
    ...operations.getTask,
    encode: (task, context) => operations.getTask.encode(shape.task(task, context), context),
  },
  cancelTask: {
    ...operations.cancelTask,
    encode: (task, context) => operations.cancelTask.encode(shape.task(task, context), context),
  },
  listTasks: {
    ...operations.listTasks,
    encode: ({ tasks, ...page }, context) =>
      operations.listTasks.encode(
        { tasks: tasks.map((task) => shape.task(task, context)), ...page },
        context,
      ),
  },
});

/** Characters at which some clients end a line, although server-sent events do not. JSON has them in texts alone. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One server-sent event of a stream; `sequence` is left out where the event belongs to no task. */
export function sseRecord(json: string, { event, sequence }: { event?: string; sequence?: number }): string {
  const id = sequence === undefined ? '' : `id: ${sequence}\n`;
  const data = wellFormedJson(json).replace(LINE_ENDS, escapeOf);
  return `${id}${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;
}

/** The content of a frame, for bindings that do not write JSON. */
export const resultOf = ({ json, result }: Frame): unknown =>
  json === undefined ? result : JSON.parse(json);

/** The record of a frame. @param envelope wraps the JSON of a result for the caller's id */
export const frameRecord = (
  { event, enveloped }: Framing,
  { sequence, result, json = JSON.stringify(result) }: Frame,
  envelope: (json: string) => string,
): string => sseRecord(enveloped ? envelope(json) : json, { event, sequence });
