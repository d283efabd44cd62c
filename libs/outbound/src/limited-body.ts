import { JsonScanner, describeExcess } from '@baton/a2a';
import { OutboundRefused } from './outbound-refused.js';

/** Bounds of an answer. */
export interface BodyBounds {
  /** Maximum size of a body, or of one event of an event stream. */
  maxBytes: number;
  /** Maximum total size of an event stream. */
  maxTotalBytes?: number;
  /** Also bound the depth and the number of values of the JSON: of the body, or of each event. */
  json?: boolean;
  /** Called when a bound is exceeded. */
  onExcess?: () => void;
}

type Refuse = (what: string) => OutboundRefused;

/**
 * Passes on a body within the bounds, else fails with OutboundRefused. The total size of an event stream is unlimited
 * without `maxTotalBytes`.
 *
 * @param host the host in the error
 */
export function limitedBody(bounds: BodyBounds, isEventStream: boolean, host: string): TransformStream {
  const refuse: Refuse = (what) => {
    bounds.onExcess?.();
    return new OutboundRefused(`"${host}" sent ${what}`);
  };
  return isEventStream ? limitedEvents(bounds, refuse) : limitedAnswer(bounds, refuse);
}

function limitedAnswer({ maxBytes, json }: BodyBounds, refuse: Refuse): TransformStream {
  const scanner = json ? new JsonScanner() : undefined;
  let size = 0;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.byteLength;
      const excess = scanner?.scan(chunk);
      if (size > maxBytes) controller.error(refuse(`an answer of more than ${maxBytes} bytes`));
      else if (excess) controller.error(refuse(`an answer that ${describeExcess(excess)}`));
      else controller.enqueue(chunk);
    },
  });
}

/**
 * Passes on whole events, so that a parser does not scan the start of a long event again with each chunk. A single CR
 * becomes LF, so that every parser sees the same lines.
 */
function limitedEvents(bounds: BodyBounds, refuse: Refuse): TransformStream {
  const { maxBytes, maxTotalBytes = Infinity, json } = bounds;
  const lines = new EventLines();
  let total = 0;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      total += chunk.byteLength;
      if (total > maxTotalBytes) {
        controller.error(refuse(`a stream of more than ${maxTotalBytes} bytes`));
        return;
      }
      const events: Buffer[] = [];
      for (const event of lines.add(chunk)) {
        const excess = json ? excessOf(event) : undefined;
        if (event.length > maxBytes || excess) {
          const what = excess ? `that ${describeExcess(excess)}` : `of more than ${maxBytes} bytes`;
          controller.error(refuse(`an event ${what}`));
          return;
        }
        events.push(event);
      }
      // Each chunk is work for all streams behind this one, and a chunk of a hostile server may have 20,000 events.
      if (events.length > 0) controller.enqueue(Buffer.concat(events));
      if (lines.held > maxBytes) controller.error(refuse(`an event of more than ${maxBytes} bytes`));
    },
    flush(controller) {
      const rest = lines.rest();
      const excess = json ? excessOf(rest) : undefined;
      if (excess) controller.error(refuse(`an event that ${describeExcess(excess)}`));
      else if (rest.length > 0) controller.enqueue(rest);
    },
  });
}

const [LF, CR] = [0x0a, 0x0d];
const BOM = [0xef, 0xbb, 0xbf];
const DATA = Buffer.from('data:');
/** Maximum pieces before they are joined. */
const MAX_PIECES = 256;

/** Splits a stream into events. */
class EventLines {
  /** Bytes of the incomplete event. */
  held = 0;
  private pieces: Buffer[] = [];
  private position = 0;
  private afterCr = false;
  private isEmptyLine = true;

  /** The events that end in this chunk, each with the empty line after it. */
  *add(chunk: Uint8Array): Generator<Buffer> {
    const out = Buffer.allocUnsafe(chunk.length + 1);
    let [start, length] = [0, 0];
    for (const byte of chunk) {
      const isBom = this.position < BOM.length && byte === BOM[this.position];
      this.position = isBom ? this.position + 1 : BOM.length;
      if (isBom) continue;
      const wasCr = this.afterCr;
      this.afterCr = byte === CR;
      if (wasCr) out[length++] = byte === LF ? CR : LF;
      let isEnd = wasCr && byte !== LF && this.endLine();
      if (byte === LF) isEnd = this.endLine();
      else if (byte !== CR) this.isEmptyLine = false;
      if (isEnd && byte !== LF) {
        // A single CR ended the event. This byte belongs to the next one.
        this.keep(out.subarray(start, length));
        start = length;
        yield this.rest();
      }
      if (byte !== CR) out[length++] = byte;
      if (!isEnd || byte !== LF) continue;
      this.keep(out.subarray(start, length));
      start = length;
      yield this.rest();
    }
    this.keep(out.subarray(start, length));
  }

  /** @returns whether the line was empty, which ends the event */
  private endLine(): boolean {
    const isEnd = this.isEmptyLine;
    this.isEmptyLine = true;
    return isEnd;
  }

  /** Returns and clears the incomplete event. */
  rest(): Buffer {
    const [first] = this.pieces;
    const event = first && this.pieces.length === 1 ? first : Buffer.concat(this.pieces);
    this.pieces = [];
    this.held = 0;
    return event;
  }

  private keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.pieces.push(piece);
    this.held += piece.length;
    if (this.pieces.length > MAX_PIECES) this.pieces = [Buffer.concat(this.pieces)];
  }
}

/** The exceeded bound of the JSON in an event's data, if any. */
function excessOf(event: Buffer) {
  const scanner = new JsonScanner();
  for (let from = 0; from < event.length;) {
    const end = event.indexOf(LF, from);
    const line = event.subarray(from, end < 0 ? event.length : end);
    if (line.subarray(0, DATA.length).equals(DATA)) {
      const excess = scanner.scan(line.subarray(DATA.length));
      if (excess) return excess;
    }
    from += line.length + 1;
  }
  return undefined;
}
