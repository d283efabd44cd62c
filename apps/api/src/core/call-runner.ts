import {
  answeredTaskId,
  type OperationCall,
  ProtocolError,
  type Results,
  type StreamingCall,
  type StreamingOperationName,
  type StreamingOperations,
  type StreamItem,
  type UnaryOperationName,
  type UnaryOperations,
} from '@baton/a2a';
import { callerOf, OpenCalls } from '@baton/identity';
import { OperationTable } from '@baton/tasks';
import { counter, type MetricOf, Metrics, within } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { type CallReply, type CallRequest, type Exchange, logContextOf } from '../http/requests.js';
import { InFlightRequests } from '../http/in-flight-requests.js';
import { EventStreams, type StreamWriter } from '../streams/event-streams.js';
import { StreamQuota } from '../streams/stream-quota.js';
import type { RequestContext } from './call-resolver.js';

const STREAM_RESUMES = counter(
  'baton_stream_resumes_total',
  'Streams that callers have resumed after the last event that they had',
);

/**
 * Maximum time to wait for an early error. A stream that is silent for longer is accepted, and opens without an event.
 */
const PEEK_MS = 1_000;
// One for all: an abort without a reason makes a DOMException with a stack, once a request.
const CALLER_GONE = new Error('the caller has disconnected');
const CALL_OVER = new Error('the call is over');

/**
 * Runs operations for callers of any protocol. A caller that disconnects ends the wait, never a run. So does a caller whose token
 * expires or is revoked. It gets an error.
 */
@Injectable()
export class CallRunner {
  private readonly unary: UnaryOperations;
  private readonly streaming: StreamingOperations;
  private readonly resumes: MetricOf<typeof STREAM_RESUMES>;

  constructor(
    { operations }: OperationTable,
    private readonly streams: EventStreams,
    private readonly quota: StreamQuota,
    private readonly inFlight: InFlightRequests,
    private readonly openCalls: OpenCalls,
    metrics: Metrics,
  ) {
    this.resumes = metrics.get(STREAM_RESUMES);
    this.unary = operations;
    this.streaming = operations;
  }

  /**
   * The result of an operation. The wait ends at once when the caller disconnects or the process shuts down. Rejects with
   * `unauthenticated` when the token of the caller is no longer valid.
   */
  async run<K extends UnaryOperationName>(
    { operation, request }: OperationCall<K>,
    context: RequestContext,
    exchange: Exchange,
  ): Promise<Results[K]> {
    const { caller, forget } = abortedWhenGone(exchange.reply);
    const unwatch = this.abortWhenRefused(caller, exchange);
    this.inFlight.add(caller);
    try {
      const result = await context.memory.during(() =>
        this.unary[operation](context, request, caller.signal),
      );
      assertNotRefused(caller);
      logContextOf(exchange.request).taskId ??= answeredTaskId(operation, result);
      return result;
    } finally {
      this.inFlight.remove(caller);
      unwatch();
      forget();
      caller.abort(CALL_OVER);
    }
  }

  /**
   * Streams what an operation yields until the stream is over, in a slot of the tenant's `openStreams`. Rejects with an
   * error before the first item, so that the answer can be a plain error.
   */
  stream(
    call: StreamingCall,
    context: RequestContext,
    exchange: Exchange,
    writer: StreamWriter,
  ): Promise<void> {
    if (context.lastEventId !== undefined) this.resumes.inc();
    return this.withItems(call, context, exchange, async (items, caller) => {
      noteTask(call.operation, await items.peek(PEEK_MS), exchange.request);
      assertNotRefused(caller);
      await this.streams.send(items, { writer, request: exchange.request, caller });
    });
  }

  /** Starts a streaming operation without an answer, for a notification. Rejects if it is not accepted. */
  start(call: StreamingCall, context: RequestContext, exchange: Exchange): Promise<void> {
    return this.withItems(call, context, exchange, async (items, caller) => {
      noteTask(call.operation, await items.peek(Infinity), exchange.request);
      assertNotRefused(caller);
      caller.abort(CALLER_GONE);
    });
  }

  /**
   * Streams what a source yields until it is over or the caller leaves, in one slot of the tenant's `openStreams`.
   * @param source called with a signal that ends it
   */
  streamFrom(
    source: (signal: AbortSignal) => AsyncIterable<StreamItem[]>,
    exchange: Exchange,
    writer: StreamWriter,
  ): Promise<void> {
    const { request } = exchange;
    return this.inSlot(callerOf(request), exchange, async (caller) => {
      assertNotRefused(caller);
      await this.streams.send(source(caller.signal), { writer, request, caller });
    });
  }

  /** What a streaming operation yields, for `streamFrom`. */
  itemsOf<K extends StreamingOperationName>(
    { operation, request }: OperationCall<K>,
    context: RequestContext,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem[]> {
    return this.streaming[operation](context, request, signal);
  }

  private withItems(
    call: StreamingCall,
    context: RequestContext,
    exchange: Exchange,
    use: (items: PeekedItems, caller: AbortController) => Promise<void>,
  ): Promise<void> {
    return this.inSlot(context, exchange, (caller) =>
      use(new PeekedItems(this.itemsOf(call, context, caller.signal), context.memory.release), caller),
    );
  }

  private async inSlot(
    of: Pick<RequestContext, 'tenantId' | 'principal'>,
    exchange: Exchange,
    use: (caller: AbortController) => Promise<void>,
  ): Promise<void> {
    const { caller, forget } = abortedWhenGone(exchange.reply);
    const unwatch = this.abortWhenRefused(caller, exchange);
    try {
      await this.quota.during(of, caller.signal, () => use(caller));
    } finally {
      unwatch();
      forget();
      caller.abort(CALL_OVER);
    }
  }

  /** Aborts with the error for the caller when its token is no longer valid. */
  private abortWhenRefused(caller: AbortController, { request }: Exchange): () => void {
    return this.openCalls.watch(callerOf(request), (reason) => caller.abort(reason));
  }
}

/** Throws the reason if the token of the caller is no longer valid. */
function assertNotRefused({ signal }: AbortController): void {
  if (signal.reason instanceof ProtocolError) throw signal.reason;
}

/** A separate function, so that a stream does not keep its first task in memory. */
function noteTask(
  operation: StreamingOperationName,
  [first]: readonly StreamItem[] = [],
  request: CallRequest,
): void {
  if (first) logContextOf(request).taskId ??= answeredTaskId(operation, first);
}

/**
 * Aborted when the caller is gone. Its creator aborts it when the call is over.
 * @returns `forget`: a stream may make many calls, and each must leave nothing behind
 */
function abortedWhenGone(reply: CallReply): { caller: AbortController; forget: () => void } {
  const caller = new AbortController();
  const onClose = (): void => {
    if (!reply.raw.writableFinished) caller.abort(CALLER_GONE);
  };
  reply.raw.once('close', onClose);
  return { caller, forget: () => reply.raw.off('close', onClose) };
}

/** A stream whose first item is already read: an earlier error can still be a plain JSON answer. */
class PeekedItems implements AsyncIterableIterator<StreamItem[]> {
  private first: Promise<IteratorResult<StreamItem[]>> | undefined;

  /** @param onFurther called for each further item: the first one, which may be large, has then reached its reader */
  constructor(
    private readonly items: AsyncGenerator<StreamItem[]>,
    private readonly onFurther: () => void,
  ) {}

  /**
   * Start the stream and wait at most `ms` for its first item, which stays in the stream. Rejects when the
   * stream fails before it. Undefined: nothing yet (a resumed stream may have nothing new), or nothing at all.
   */
  async peek(ms: number): Promise<readonly StreamItem[] | undefined> {
    this.first = this.items.next();
    if (ms === Infinity) return valueOf(await this.first);
    return valueOf(await within(this.first, ms));
  }

  next(): Promise<IteratorResult<StreamItem[]>> {
    if (!this.first) this.onFurther();
    const next = this.first ?? this.items.next();
    this.first = undefined;
    return next;
  }

  return(): Promise<IteratorResult<StreamItem[]>> {
    return this.items.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const valueOf = (result: IteratorResult<StreamItem[]> | undefined): readonly StreamItem[] | undefined =>
  result === undefined || result.done === true ? undefined : result.value;
