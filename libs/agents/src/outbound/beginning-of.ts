import { setTimeout as delay } from 'node:timers/promises';

/** How long a text that is only quoted is waited for. */
const QUOTE_MS = 2_000;

/**
 * The beginning of a body that is only quoted. It may be endless, or break off. Never rejects, and cancels the rest.
 * @param bytes how much of it
 */
export async function beginningOf({ body }: Pick<Response, 'body'>, bytes: number): Promise<Buffer> {
  return body ? restOfBeginning([], body.getReader(), bytes) : Buffer.alloc(0);
}

/**
 * The same for a body that is already being read.
 * @param start the bytes that were read already
 */
export async function restOfBeginning(
  start: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytes: number,
): Promise<Buffer> {
  const late = delay(QUOTE_MS, undefined, { ref: false });
  const chunks = [...start];
  try {
    for (let size = Buffer.concat(chunks).length; size < bytes;) {
      const read = await Promise.race([reader.read(), late]);
      if (!read?.value) break;
      chunks.push(read.value);
      size += read.value.length;
    }
  } catch {
    // The error quotes the received part.
  }
  // Not awaited: a body that never ends would hold back its status.
  reader.cancel().catch(() => undefined);
  return Buffer.concat(chunks).subarray(0, bytes);
}
