import { createParser } from 'eventsource-parser';
import { UnreachableError } from './unreachable-error.js';
export const URL_OPTION = [
  '--url <url>',
  'URL of the server (default: BATON_URL, or the npm start of this folder)',
] as const;
export const TOKEN_OPTION = [
  '--token <token>',
  'token of the tenant (default: BATON_TOKEN, or the demo token)',
] as const;
/** Whether the connection broke, so that the same call may succeed in a moment. */
export const isLost = (error: unknown): boolean =>
  // Node's only message for a body that breaks off.
  error instanceof UnreachableError || (error as { message?: unknown } | null)?.message === 'terminated';

/**
 * Reads the `id:` fields of an event stream beside the SDK's client, which does not return them. Fed with the text of
 * the stream, it knows the sequence of every event that the client yields, in order.
 */
export class SequenceTap {
  private readonly sequences: (number | undefined)[] = [];
  private readonly parser = createParser({
    onEvent: ({ id }) => void this.sequences.push(/^\d+$/.test(id ?? '') ? Number(id) : undefined),
  });

  /** @param text the next piece of the stream, cut anywhere */
  feed(text: string): void {
    this.parser.feed(text);
  }

  /** The sequence of the next event; undefined if its frame has none. */
  next(): number | undefined {
    return this.sequences.shift();
  }
}
