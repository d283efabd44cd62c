import { encodeRpcError, grpcStatusName, httpErrorWire, ProtocolError } from '@baton/a2a';
import { Metadata, type ServerInterceptingCall, status as Status } from '@grpc/grpc-js';
import { EventEmitter } from 'node:events';
import { constants, type ServerHttp2Stream } from 'node:http2';
import { type AnswerChannel, type CallReply, logContextOf } from '../http/requests.js';
import { encodeMessage, messageTypeOf } from './protobuf.js';
import { GrpcRequest } from './grpc-request.js';

/** Clients of gRPC take about 8 KiB of headers and trailers. */
const MAX_DETAILS_BYTES = 4 * 1024;
/** The message of a status is a trailer as well, and some of its characters are sent as three. */
const MAX_MESSAGE_LENGTH = 1024;
/** A client shows some faults of a request. The details must fit into the headers of one answer. */
const MAX_VIOLATIONS = 10;

/** HTTP's status of a call that its caller has given up, as proxies log it. */
const CALLER_LEFT = 499;

/** Emits `close` when the call is over, also to those who begin to listen later. */
class CallChannel extends EventEmitter implements AnswerChannel {
  destroyed = false;
  writableFinished = false;

  override once(event: 'close', listener: () => void): this {
    if (!this.destroyed) return super.once(event, listener);
    process.nextTick(listener);
    return this;
  }
}

/** The way back to the caller of one call: headers, messages and one status. Nothing is sent after the call is over. */
export class GrpcReply implements CallReply {
  readonly raw = new CallChannel();
  /** HTTP's status for the log and the metrics. */
  httpStatus = CALLER_LEFT;
  private readonly initial = new Metadata();
  private isOpen = false;
  /** Bytes of messages that the caller has not taken. */
  private unread = 0;
  /** Called with the change of these bytes. */
  onUnread: ((change: number) => void) | undefined;

  constructor(
    private readonly call: ServerInterceptingCall,
    private readonly request: GrpcRequest,
  ) {
    this.header('x-request-id', request.id);
  }

  header(name: string, value: string): void {
    this.initial.set(name.toLowerCase(), visible(value));
  }

  headers(headers: Record<string, string>): void {
    for (const [name, value] of Object.entries(headers)) this.header(name, value);
  }

  hijack(): void {
    // A gRPC call has no framework that would write the answer.
  }

  /** Sends the headers, once. */
  open(): void {
    if (this.isOpen || this.raw.destroyed) return;
    this.isOpen = true;
    this.call.sendMetadata(this.initial);
  }

  /** @param onTaken called when the caller has taken the message */
  message(bytes: Buffer, onTaken: () => void): void {
    this.open();
    if (this.raw.destroyed) return;
    this.count(bytes.length);
    this.call.sendMessage(bytes, () => {
      this.count(-bytes.length);
      onTaken();
    });
  }

  /** Ends the call well. */
  ok(trailers: Readonly<Record<string, string>> = {}): void {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
    this.end(Status.OK, '', metadata, 200);
  }

  /** Ends the call with an error: its status, and the details that A2A 1.0 §10.6 asks for. */
  fail(failure: ProtocolError, trailers: Readonly<Record<string, string>> = {}): void {
    const name = grpcStatusName(failure.kind);
    const code = Status[name as keyof typeof Status];
    // gRPC escapes it, but not half of a character.
    const message = failure.message.slice(0, MAX_MESSAGE_LENGTH).replace(/\p{Surrogate}/gu, ' ');
    const metadata = this.isOpen ? new Metadata() : this.initial.clone();
    for (const [key, value] of Object.entries(trailers)) metadata.set(key, value);
    metadata.set('grpc-status-details-bin', detailsOf(failure, code, message));
    const { retryAfterSeconds } = failure.detail;
    if (retryAfterSeconds !== undefined) metadata.set('retry-after', String(retryAfterSeconds));
    const log = logContextOf(this.request);
    log.rpcError = encodeRpcError(failure).code;
    log.grpcStatus = name;
    this.end(code, message, metadata, httpErrorWire(failure.kind).http);
  }

  /** Fails a call whose message is not complete: resets the stream of the caller, and frees what has arrived. */
  failUnread(failure: ProtocolError): void {
    this.fail(failure);
    const { stream } = this;
    // Some releases of Node (22.23, 26.10) drop the answer if the stream is closed in the same turn.
    setImmediate(() => stream?.close(constants.NGHTTP2_NO_ERROR));
  }

  /** The call is over: everything was sent, its deadline has passed, or the caller has left. */
  close(): void {
    if (this.raw.destroyed) return;
    if (!this.raw.writableFinished && Number(this.call.getDeadline()) <= Date.now()) this.httpStatus = 504;
    this.raw.destroyed = true;
    this.count(-this.unread);
    this.raw.emit('close');
  }

  /** Breaks the stream off. grpc-js has no way to do so for a reader that takes nothing. */
  destroy(): void {
    this.stream?.destroy();
    this.close();
  }

  /** Private members of grpc-js. */
  private get stream(): ServerHttp2Stream | undefined {
    const { nextCall } = this.call as unknown as { nextCall?: { stream?: ServerHttp2Stream } };
    return nextCall?.stream;
  }

  /** After the end nothing is left to count. */
  private count(change: number): void {
    const before = this.unread;
    this.unread = Math.max(before + change, 0);
    if (this.unread !== before) this.onUnread?.(this.unread - before);
  }

  private end(code: Status, details: string, metadata: Metadata, httpStatus: number): void {
    if (this.raw.destroyed || this.raw.writableFinished) return;
    this.raw.writableFinished = true;
    this.httpStatus = httpStatus;
    this.call.sendStatus({ code, details, metadata });
  }
}

/** Visible ASCII, which is all that a header may have. */
const visible = (text: string): string => text.replace(/[^ -~]/g, ' ');

/** `google.rpc.Status` with ErrorInfo, and BadRequest and RetryInfo where they apply (A2A 1.0 §10.6). */
function detailsOf(failure: ProtocolError, code: number, message: string): Buffer {
  const status = messageTypeOf('google.rpc.Status');
  const [info, ...others] = encodeRpcError(failure).data as JsonDetail[];
  const some = others.map(({ fieldViolations, ...detail }) => ({
    ...detail,
    ...(fieldViolations && { fieldViolations: fieldViolations.slice(0, MAX_VIOLATIONS) }),
  }));
  const all = encodeMessage(status, { code, message, details: [info, ...some] });
  if (all.length <= MAX_DETAILS_BYTES) return all;
  return encodeMessage(status, { code, message, details: [{ ...info, metadata: {} }] });
}

interface JsonDetail {
  '@type': string;
  fieldViolations?: unknown[];
}
