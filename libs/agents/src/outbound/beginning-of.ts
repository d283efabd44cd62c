import { setTimeout as delay } from 'node:timers/promises';

/** How much of a body is read. */
export interface Beginning {
  bytes: number;
  ms: number;
}

/** The beginning of a body that is only quoted. It may be endless, or break off. Never rejects, and cancels the rest. */
export async function beginningOf(
  { body }: Pick<Response, 'body'>,
  { bytes, ms }: Beginning,
): Promise<Buffer> {
  if (!body) return Buffer.alloc(0);
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const late = delay(ms, undefined, { ref: false });
  const chunks: Uint8Array[] = [];
  try {
    for (let size = 0; size < bytes;) {
      const read = await Promise.race([reader.read(), late]);
      if (!read?.value) break;
      chunks.push(read.value);
      size += read.value.length;
    }
  } catch {
    // What has arrived is quoted.
  }
  // Not awaited: a body that never ends would hold back its status.
  reader.cancel().catch(() => undefined);
  return Buffer.concat(chunks).subarray(0, bytes);
}
