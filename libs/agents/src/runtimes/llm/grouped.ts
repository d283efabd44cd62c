import { setTimeout as delay } from 'node:timers/promises';

/** What a source that never waits may put into one group. */
const MAX_GROUP = 1000;
const DONE = Symbol('done');

/**
 * What a source says, in groups: the first thing at once, then whatever comes within `ms` of the group before. So
 * a reply of many small pieces becomes few events, and nobody waits noticeably longer.
 */
export async function* grouped<T>(source: AsyncIterable<T>, ms: number): AsyncGenerator<T[]> {
  const parts = source[Symbol.asyncIterator]();
  let next = read(parts);
  let due: Promise<undefined> = Promise.resolve(undefined);
  try {
    for (;;) {
      const first = await next;
      if (first === DONE) return;
      const group = [first.value];
      next = read(parts);
      while (group.length < MAX_GROUP) {
        const part = await Promise.race([next, due]);
        if (part === undefined || part === DONE) break;
        group.push(part.value);
        next = read(parts);
      }
      yield group;
      due = delay(ms, undefined, { ref: false });
    }
  } finally {
    void parts.return?.();
  }
}

/** One part ahead of the reader, who may come late to hear that it has failed. */
function read<T>(parts: AsyncIterator<T>): Promise<{ value: T } | typeof DONE> {
  const part = parts.next().then(({ done, value }) => (done ? DONE : { value }));
  part.catch(() => undefined);
  return part;
}
