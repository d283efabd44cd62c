import { cut } from './protocol.js';

const MAX_LINE = 4_000;
/** Lines a second that are passed on; the rest is counted. */
const MAX_LINES = 200;

/**
 * Pass on what the code of an agent writes to standard output and standard error, by line, with the async context
 * of its writer. Long lines are cut and floods are thinned out.
 */
export function captureConsole(onLine: (text: string) => void): void {
  const lines = new LimitedLines(onLine);
  for (const stream of [process.stdout, process.stderr]) {
    stream.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
      lines.add(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
      const callback = rest.find((value) => typeof value === 'function') as (() => void) | undefined;
      if (callback) queueMicrotask(callback);
      return true;
    };
  }
}

class LimitedLines {
  private left = MAX_LINES;
  private dropped = 0;
  private second = 0;

  constructor(private readonly onLine: (text: string) => void) {}

  /** A text is written whole: half lines are lines, because others write in between. */
  add(text: string): void {
    for (const line of text.split('\n', MAX_LINES + 1)) if (line.trim() !== '') this.pass(line);
  }

  private pass(line: string): void {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.second) {
      if (this.dropped > 0) this.onLine(`(${this.dropped} more lines were dropped)`);
      this.second = second;
      this.left = MAX_LINES;
      this.dropped = 0;
    }
    if (this.left-- > 0) this.onLine(cut(line, MAX_LINE));
    else this.dropped += 1;
  }
}
