import type { Envelope } from '../envelope.js';
import { ProtocolError } from '../errors.js';
import type { Profile } from './profile.js';

/** Throws `bad-request` where a request must have an id and this one has none. */
export function assertEnvelopeId({ absentId }: Profile, { hasId }: Envelope): void {
  if (absentId === 'notification' || hasId) return;
  throw new ProtocolError('bad-request', 'id: is required: notifications are not supported here', {
    violations: [{ field: 'id', description: 'is required' }],
  });
}

/** Throws `bad-request` where the `Accept` header must allow what is answered, and does not. */
export function assertAccept({ accept }: Profile, header: string | undefined, isStreaming: boolean): void {
  const type = isStreaming ? 'text/event-stream' : 'application/json';
  if (accept === 'any' || allows(header ?? '', type)) return;
  throw new ProtocolError('bad-request', `the Accept header must allow ${type} for this method`, {
    metadata: { accept: type },
  });
}

/** RFC 9110 §12.5.1, without the ranking: the most specific range that matches decides. */
function allows(header: string, type: string): boolean {
  const ranges = header.split(',').map(readRange);
  const group = `${type.split('/', 1)[0] ?? ''}/*`;
  for (const wanted of [type, group, '*/*']) {
    const matching = ranges.filter(({ range }) => range === wanted);
    if (matching.length > 0) return matching.some(({ refused }) => !refused);
  }
  return false;
}

function readRange(text: string): { range: string; refused: boolean } {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  return { range, refused: parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) };
}
