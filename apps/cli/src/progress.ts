import { SingleBar } from 'cli-progress';
import { inMib, type Terminal } from './output.js';

/** A command that is done sooner shows nothing. */
const AFTER_MS = 1_000;
/** Five times a second looks smooth. */
const EVERY_MS = 200;

/** How far a stream of bytes has come. */
interface Source {
  /** Bytes so far. */
  done: () => number;
  /** All of them; unset = unknown. */
  total?: number;
}

/**
 * Does `work` and shows on the error stream how far it has come, if that is a terminal and the work takes longer than a
 * second. The bar is gone when the work is done.
 */
export async function withProgress<T>(
  { progress: stream }: Terminal,
  what: string,
  { done, total }: Source,
  work: () => Promise<T>,
): Promise<T> {
  if (!stream?.isTTY) return work();
  const known = total === undefined ? '{value} MiB' : '{bar} {percentage} % of {total} MiB';
  const bar = new SingleBar({
    stream,
    format: `${what} ${known}, {duration_formatted}`,
    clearOnComplete: true,
    hideCursor: true,
    barCompleteChar: '#',
    barIncompleteChar: '-',
  });
  const begun = setTimeout(() => bar.start(inMib(total ?? 0), inMib(done())), AFTER_MS);
  const ticks = setInterval(() => bar.update(inMib(done())), EVERY_MS);
  try {
    return await work();
  } finally {
    clearTimeout(begun);
    clearInterval(ticks);
    bar.stop();
  }
}
