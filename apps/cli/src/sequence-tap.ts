import { createParser } from 'eventsource-parser';

/**
 * Reads the `id:` fields of an event stream beside the SDK's client, which does not return them. Fed with the text of
 * the stream, it has the sequence of every event that the client yields, in order.
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
