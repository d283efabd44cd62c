import { type IncomingMessage, ServerResponse } from 'node:http';
import { isFine } from './paced-request.js';

/** Maximum time to read and drop the rest of a request after the answer, in ms. */
const MAX_MS = 30_000;
/** Maximum time between two chunks of it, in ms. */
const IDLE_MS = 5_000;
/** Maximum number of bytes that the process drops in `WINDOW_MS`: twice the largest rest of one request. */
const WINDOW_BYTES = 512 * 1024 * 1024;
/** Long enough to level out single large requests, and short enough that callers get their answers again soon. */
const WINDOW_MS = 10_000;
/** A chunk counts as at least this many bytes: reading a chunk of one byte takes as long. */
const CHUNK_BYTES = 1_024;

/**
 * An answer that may come before the whole request was read, such as a refusal of a large body. Node would close a connection
 * with `Connection: close` at once, which resets it. A client that writes its whole request before it reads, such as Python's
 * urllib, would see a broken pipe in place of the answer. This response sends the answer at once, and ends only when the rest of
 * the request was read and dropped (lingering close, RFC 9112 §9.6). Beyond the bounds it closes the connection.
 *
 * For the option `ServerResponse` of `http.createServer`, with `PacedRequest` for its option `IncomingMessage`.
 */
export class LingeringResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  /** Maximum number of bytes to drop of one request. */
  protected readonly maxBytes: number = 256 * 1024 * 1024;
  /** When the answer was sent to a caller that was still sending, by `performance.now()`. */
  answeredAt: number | undefined;

  override end(
    chunk?: unknown,
    encoding?: BufferEncoding | (() => void) | null,
    callback?: (() => void) | null,
  ): this {
    if (this.answeredAt !== undefined) return this;
    if (!isUnread(this.req)) return super.end(chunk, encoding as BufferEncoding, callback ?? undefined);
    const [body, whenSent] =
      typeof chunk === 'function'
        ? [undefined, chunk as () => void]
        : [chunk, typeof encoding === 'function' ? encoding : (callback ?? undefined)];
    this.answeredAt = performance.now();
    const hasBody = body !== undefined && body !== null;
    if (hasBody) this.write(body, typeof encoding === 'string' ? encoding : 'utf8');
    // An answer to HEAD has a body here, but Node sends nothing of it.
    if (!hasBody || this.req.method === 'HEAD') this.flushHeaders();
    this.dropRequest((isRead) => {
      if (!isRead) this.once('finish', () => this.req.socket.destroySoon());
      super.end(whenSent);
    });
    return this;
  }

  /** Reads and drops the rest of the request. `done` is called once, with whether that was all of it; never if the caller leaves. */
  private dropRequest(done: (isRead: boolean) => void): void {
    const { req } = this;
    let length = 0;
    const stop = (isRead: boolean): void => {
      forget();
      req.pause();
      done(isRead);
    };
    const forget = (): void => {
      clearTimeout(late);
      clearTimeout(idle);
      req.off('data', onData).off('end', onEnd);
    };
    const late = setTimeout(stop, MAX_MS, false);
    const idle = setTimeout(stop, IDLE_MS, false);
    const onEnd = (): void => stop(true);
    const onData = (chunk: Buffer): void => {
      const bytes = Math.max(chunk.length, CHUNK_BYTES);
      length += bytes;
      idle.refresh();
      if (isFine(req) || length > this.maxBytes || !mayDrop(bytes)) stop(false);
    };
    this.once('close', forget);
    req
      .on('error', () => undefined)
      .on('data', onData)
      .on('end', onEnd)
      .resume();
  }
}

/** Whether the request has a body that was not received completely. */
const isUnread = ({ complete, destroyed, headers }: IncomingMessage): boolean =>
  !complete &&
  !destroyed &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0);

let windowEnd = -Infinity;
let dropped = 0;

/** Counts bytes that are dropped. False: the process has dropped its maximum in this window, so the connection must close. */
function mayDrop(bytes: number): boolean {
  const now = performance.now();
  if (now > windowEnd) {
    windowEnd = now + WINDOW_MS;
    dropped = 0;
  }
  dropped += bytes;
  return dropped <= WINDOW_BYTES;
}
