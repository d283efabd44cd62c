import type { Framing } from './codec.js';

/** One server-sent event of a stream; `sequence` is left out where the event belongs to no task. */
export function sseRecord(json: string, { event, sequence }: { event?: string; sequence?: number }): string {
  const id = sequence === undefined ? '' : `id: ${sequence}\n`;
  return `${id}${event === undefined ? '' : `event: ${event}\n`}data: ${json}\n\n`;
}

/** The record of a frame. `envelope` wraps a result for the caller's id and makes it text. */
export const frameRecord = (
  { event, enveloped }: Framing,
  { sequence, result }: { sequence: number; result: unknown },
  envelope: (result: unknown) => string,
): string => sseRecord(enveloped ? envelope(result) : JSON.stringify(result), { event, sequence });
