import {
  encodeRpcError,
  type Frame,
  grpcStatusName,
  httpErrorWire,
  ProtocolError,
  resultOf,
} from '@baton/a2a';
import { Metadata, type ServerInterceptingCall, status as Status } from '@grpc/grpc-js';
import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { constants, type ServerHttp2Stream } from 'node:http2';
import { isIP } from 'node:net';
import type { AnswerWriter, FrameWriter } from '../core/call-handler.js';
import {
  type AnswerChannel,
  type CallReply,
  type CallRequest,
  logContextOf,
  requestIdOf,
} from '../http/requests.js';
import type { StreamOutput } from '../streams/event-stream.js';
import { encodeMessage, messageOf } from './protobuf.js';

/** Clients of gRPC take about 8 KiB of headers and trailers. */
const MAX_DETAILS_BYTES = 4 * 1024;
const MAX_MESSAGE_LENGTH = 1024;
const MAX_VIOLATIONS = 10;

/** HTTP's status of a call that its caller has given up, as proxies log it. */
const CALLER_LEFT = 499;

/**
 * The address of a caller: that of the peer, or if the peer is a trusted proxy the last one in `x-forwarded-for` that is not.
 * @param trusted tells whether an address is that of a proxy
 */
export function callerAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusted: (address: string) => boolean,
): string {
  const addresses = [...(forwardedFor ?? '').split(',').map((each) => each.trim()), peer].filter(isIP);
  return addresses.findLast((address) => !trusted(address)) ?? addresses[0] ?? peer;
}

/** Where a call comes from. */
export interface CallOrigin {
  /** `/{service}/{rpc}`. */
  path: string;
  /** The host name that the caller asked for. */
  authority: string;
  /** Address of the peer. */
  peer: string;
  /** Whether an address is that of a trusted proxy. */
  isProxy: (address: string) => boolean;
  secure: boolean;
}

/** A call of gRPC as the guard and the core see a request: its metadata are headers. */
export class GrpcRequest implements CallRequest {
  readonly id: string;
  readonly ip: string;
  readonly headers: IncomingHttpHeaders;
  readonly method = 'POST';
  readonly params = {};
  readonly query = {};
  readonly host: string;
  readonly protocol: string;
  readonly socket = {};
  readonly isGrpc = true;
  readonly routeOptions: { readonly url: string };

  constructor({ path, authority, peer, isProxy, secure }: CallOrigin, metadata: Metadata) {
    this.headers = headersOf(metadata, authority);
    this.host = authority;
    this.id = requestIdOf(this);
    const { 'x-forwarded-for': forwardedFor } = this.headers;
    this.ip = callerAddress(peer, forwardedFor as string | undefined, isProxy);
    this.protocol = secure ? 'https' : 'http';
    this.routeOptions = { url: path };
  }
}

/** Text metadata as headers. As Node does, the values of one key are joined. */
function headersOf(metadata: Metadata, host: string): IncomingHttpHeaders {
  const headers: Record<string, string> = {};
  for (const [key, values] of Object.entries(metadata.toJSON())) {
    const texts = values.filter((value) => typeof value === 'string');
    if (texts.length > 0) headers[key] = texts.join(', ');
  }
  return { ...headers, host };
}

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
    // There is nothing to take away from anybody.
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
    if (!this.raw.destroyed) this.call.sendMessage(bytes, onTaken);
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
    // gRPC escapes it, but half a character is none.
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

  /** The same for a call whose message is not complete: the caller is told to send no more, and what has arrived is freed. */
  failUnread(failure: ProtocolError): void {
    this.fail(failure);
    this.stream?.close(constants.NGHTTP2_NO_ERROR);
  }

  /** The call is over: everything was sent, its deadline has passed, or the caller has left. */
  close(): void {
    if (this.raw.destroyed) return;
    if (!this.raw.writableFinished && Number(this.call.getDeadline()) <= Date.now()) this.httpStatus = 504;
    this.raw.destroyed = true;
    this.raw.emit('close');
  }

  /** Breaks the stream off. grpc-js has no way to do so for a reader that takes nothing. */
  destroy(): void {
    this.stream?.destroy();
    this.close();
  }

  /** What grpc-js keeps to itself. */
  private get stream(): ServerHttp2Stream | undefined {
    const { nextCall } = this.call as unknown as { nextCall?: { stream?: ServerHttp2Stream } };
    return nextCall?.stream;
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
  const status = messageOf('google.rpc.Status');
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

/** Makes the bytes of the JSON of a result, or of a frame with its sequence. */
export type Encode = (json: unknown, sequence?: number) => Buffer;

/** Writes the answer to one call. */
export class GrpcAnswer implements AnswerWriter {
  constructor(
    private readonly reply: GrpcReply,
    private readonly encode: Encode,
  ) {}

  result(result: unknown): void {
    this.reply.message(this.encode(result), () => undefined);
    this.reply.ok();
  }

  error(failure: ProtocolError): void {
    this.reply.fail(failure);
  }

  stream(): FrameWriter {
    return new GrpcStream(this.reply, this.encode);
  }
}

/** A stream as the messages of a call. Its trailers have the sequence of the last one, and the error that ended it. */
class GrpcStream implements FrameWriter, StreamOutput {
  /** HTTP/2 has pings. */
  readonly heartbeat = undefined;
  private failure: ProtocolError | undefined;
  private lastSequence = 0;

  constructor(
    private readonly reply: GrpcReply,
    private readonly encode: Encode,
  ) {}

  output(): StreamOutput {
    return this;
  }

  frame(frame: Frame): Buffer {
    this.lastSequence = frame.sequence;
    return this.encode(resultOf(frame), frame.sequence);
  }

  error(failure: ProtocolError): undefined {
    this.failure = failure;
  }

  get destroyed(): boolean {
    return this.reply.raw.destroyed;
  }

  open(onClose: () => void): void {
    this.reply.raw.once('close', onClose);
    this.reply.open();
  }

  /** HTTP/2 has sent them by itself. */
  flush(): void {}

  write(bytes: Buffer, onTaken: () => void): void {
    this.reply.message(bytes, onTaken);
  }

  explain(reason: string): undefined {
    this.failure = new ProtocolError('unavailable', reason);
  }

  end(): void {
    const trailers = { 'last-event-id': String(this.lastSequence) };
    if (this.failure) this.reply.fail(this.failure, trailers);
    else this.reply.ok(trailers);
  }

  destroy(): void {
    this.reply.destroy();
  }
}
