import type { Frame } from '../observations.js';
import type { Defect } from './finding.js';

/**
 * Whether frames carry the sequences after `after` one by one, in the order in which they arrived. Each
 * sequence that is missing, repeated or late is reported once.
 */
export function* sequenceDefects(frames: readonly Frame[], after: number): Generator<[Defect, string]> {
  const seen = new Set<number>();
  let highest = after;
  for (const { sequence } of frames) {
    if (seen.has(sequence) || sequence <= after) yield ['doubled', `event ${sequence} came again`];
    else if (sequence < highest) yield ['reordered', `event ${sequence} came after event ${highest}`];
    seen.add(sequence);
    highest = Math.max(highest, sequence);
  }
  for (let sequence = after + 1; sequence < highest; sequence++) {
    if (!seen.has(sequence)) yield ['lost', `event ${sequence} never came`];
  }
}
