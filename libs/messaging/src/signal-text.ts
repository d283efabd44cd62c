import { OUTCOMES, type PublishedEvent, type TaskSignal } from './messaging.js';

/**
 * A task signal as one text: a header line, then the JSON texts of the events one after the other, as they
 * came. The header is `<lastSequence>` followed by ` <sequence>,<attempt>,<length>` for each event (length in
 * UTF-16 units), so that neither side parses or copies an event's JSON:
 *
 *     12 11,1,24 12,1,9
 *     {"statusUpdate":{"a":1}}{"b":"c"}
 *
 * @param limitBytes a longer signal is cut down to its lastSequence; its receivers read the log
 */
export function encodeSignal(signal: TaskSignal, limitBytes: number): string {
  let header = String(signal.lastSequence);
  let body = '';
  for (const { sequence, attempt, json, outcome } of signal.events) {
    header += ` ${sequence},${attempt},${json.length}`;
    if (outcome) header += `,${OUTCOMES.indexOf(outcome)}`;
    body += json;
  }
  const text = `${header}\n${body}`;
  return fits(text, limitBytes) ? text : `${signal.lastSequence}\n`;
}

/** Decodes the output of `encodeSignal`. Throws on anything else. */
export function decodeSignal(text: string): TaskSignal {
  const end = text.indexOf('\n');
  const [lastSequence, ...frames] = text.slice(0, Math.max(end, 0)).split(' ');
  let from = end + 1;
  const events = frames.map((frame): PublishedEvent => {
    const [sequence, attempt, length, outcomeAt] = frame.split(',').map(Number);
    const json = text.slice(from, (from += length ?? NaN));
    const outcome = outcomeAt === undefined ? undefined : OUTCOMES[outcomeAt];
    return { sequence: whole(sequence), attempt: whole(attempt), json, ...(outcome && { outcome }) };
  });
  if (from !== text.length) throw new Error('task signal is truncated or has trailing bytes');
  return { lastSequence: whole(Number(lastSequence || NaN)), events };
}

function whole(value: number | undefined): number {
  if (value === undefined || !Number.isSafeInteger(value) || value < 0) throw new Error('not a task signal');
  return value;
}

/** Whether the text is at most `limit` bytes of UTF-8; counts bytes only when the length leaves it open. */
function fits(text: string, limit: number): boolean {
  if (text.length > limit) return false;
  return text.length * 3 <= limit || Buffer.byteLength(text) <= limit;
}
