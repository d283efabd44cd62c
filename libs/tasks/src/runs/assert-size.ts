import type { EventPayload, Part } from '@baton/a2a';
import { TurnFailure } from '../core/turn-failure.js';

/**
 * Measures the texts and files of an event before it becomes JSON, which may be six times as large.
 * @throws TurnFailure if they are larger than `maxBytes`
 */
export function assertSize(payload: EventPayload, maxBytes: number): void {
  if (sizeOf(partsOf(payload)) <= maxBytes) return;
  throw new TurnFailure(`The agent sent an event of more than ${maxBytes} bytes`);
}

function partsOf(payload: EventPayload): readonly Part[] {
  if (payload.$case === 'artifactUpdate') return payload.value.artifact?.parts ?? [];
  return payload.value.status?.message?.parts ?? [];
}

/** Bytes of texts and files. */
function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { content }) => {
    const value: unknown = content?.value;
    if (typeof value === 'string') return sum + Buffer.byteLength(value);
    return sum + (Buffer.isBuffer(value) ? value.length : 0);
  }, 0);
}
