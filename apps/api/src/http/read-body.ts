import type { IncomingMessage } from 'node:http';
import { ProtocolError } from '@baton/a2a';

/** How much of a refused body is read and thrown away, so that the caller gets to read why it was refused. */
const DISCARD_FACTOR = 16;
/** The same where the limit is a small one of the tenant's. */
const LEAST_DISCARDED = 16 * 1024 * 1024;

/** So many chunks become one. */
const SMALL_CHUNKS = 256;

/** The caller left before its request was complete. Nobody is there to answer. */
export class CallerLeft extends Error {
  override readonly name = 'CallerLeft';
}

/** How much a body may be, and how long it may take. */
export interface BodyLimit {
  bytes: number;
  ms: number;
  /** The limit of the tenant that it is, if it is one. */
  name?: string;
}

/**
 * The whole body of a request.
 * @param limit a larger body is refused with `too-large`, a slower one with `request-timeout`; both name it
 * @throws CallerLeft if the connection breaks before the end
 */
export function readBody(request: IncomingMessage, limit: BodyLimit): Promise<Buffer> {
  const { bytes, ms } = limit;
  if (Number(request.headers['content-length']) > bytes) {
    discard(request, discardable(limit));
    return Promise.reject(tooLarge(limit));
  }
  return new Promise((resolve, reject) => {
    const body = new Chunks();
    const late = setTimeout(() => settle(() => reject(tooSlow(ms))), ms);
    const settle = (outcome: () => void): void => {
      clearTimeout(late);
      request.removeAllListeners('data').off('end', onEnd).off('error', onGone).off('close', onGone);
      outcome();
    };
    const onEnd = (): void => settle(() => resolve(body.whole()));
    const onGone = (): void =>
      settle(() => reject(new CallerLeft('the request was not received completely')));
    request.on('end', onEnd).on('error', onGone).on('close', onGone);
    request.on('data', (chunk: Buffer) => {
      body.add(chunk);
      if (body.length <= bytes) return;
      settle(() => reject(tooLarge(limit)));
      discard(request, discardable(limit));
    });
  });
}

/** Chunks of a body. A byte at a time would cost a hundred bytes each: small ones are put together on the way. */
class Chunks {
  length = 0;
  private readonly parts: Buffer[] = [];
  private small: Buffer[] = [];

  add(chunk: Buffer): void {
    this.length += chunk.length;
    this.small.push(chunk);
    if (this.small.length === SMALL_CHUNKS) this.join();
  }

  whole(): Buffer {
    this.join();
    return Buffer.concat(this.parts);
  }

  private join(): void {
    this.parts.push(Buffer.concat(this.small));
    this.small = [];
  }
}

const discardable = ({ bytes, name }: BodyLimit): number =>
  name === undefined ? bytes * DISCARD_FACTOR : Math.max(bytes * DISCARD_FACTOR, LEAST_DISCARDED);

function tooLarge({ bytes, name }: BodyLimit): ProtocolError {
  const limit = name === undefined ? 'the limit of' : `the limit ${name} of this tenant,`;
  return new ProtocolError(
    'too-large',
    `the request body is larger than ${limit} ${String(bytes)} bytes: send less, or large content by URL`,
    { metadata: { ...(name !== undefined && { limit: name }), limitBytes: String(bytes) } },
  );
}

function tooSlow(ms: number): ProtocolError {
  return new ProtocolError(
    'request-timeout',
    `the request body did not arrive within ${String(ms)} ms: send it again, in one go`,
    { metadata: { limitMs: String(ms) } },
  );
}

/**
 * Read on and forget, up to `limit` bytes. Closing at once would reset the connection under a caller that is
 * still sending, and it would see a broken pipe in place of the answer.
 */
function discard(request: IncomingMessage, limit: number): void {
  let length = 0;
  request.on('error', () => undefined);
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > limit) request.destroy();
  });
}
