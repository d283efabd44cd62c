import type { IncomingMessage } from 'node:http';
import { ProtocolError } from '@baton/a2a';

/** How much of a refused body is read and thrown away, so that the caller gets to read why it was refused. */
const DISCARD_FACTOR = 16;

/** The caller left before its request was complete. Nobody is there to answer. */
export class CallerLeft extends Error {
  override readonly name = 'CallerLeft';
}

/**
 * The whole body of a request.
 * @param limit in bytes; a longer body is refused with `too-large`, which names the limit
 * @throws CallerLeft if the connection breaks before the end
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(request.headers['content-length']) > limit) {
    discard(request, limit * DISCARD_FACTOR);
    return Promise.reject(tooLarge(limit));
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (outcome: () => void): void => {
      request.removeAllListeners('data').off('end', onEnd).off('error', onGone).off('close', onGone);
      outcome();
    };
    const onEnd = (): void => settle(() => resolve(Buffer.concat(chunks)));
    const onGone = (): void =>
      settle(() => reject(new CallerLeft('the request was not received completely')));
    request.on('end', onEnd).on('error', onGone).on('close', onGone);
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limit) return;
      settle(() => reject(tooLarge(limit)));
      discard(request, limit * DISCARD_FACTOR);
    });
  });
}

function tooLarge(limit: number): ProtocolError {
  return new ProtocolError(
    'too-large',
    `the request body is larger than the limit of ${String(limit)} bytes: send less, or large content by URL`,
    { metadata: { limitBytes: String(limit) } },
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
