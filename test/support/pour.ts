import type { Writable } from 'node:stream';

/** Writes bytes again and again until the reader has left. */
export function pour(stream: Writable, bytes: Buffer): void {
  stream.on('error', () => undefined);
  const write = (): void => {
    if (stream.destroyed) return;
    if (stream.write(bytes)) setImmediate(write);
    else stream.once('drain', write);
  };
  write();
}
