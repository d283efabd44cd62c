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
 * becomes LF, so that every parser sees the same lines. A chunk of a hostile server may have 20,000 events, so nothing is made for each
 * of them, and all of them are one chunk to the streams behind this one.
 */
function limitedEvents(bounds: BodyBounds, refuse: Refuse): TransformStream {
  const { maxBytes, maxTotalBytes = Infinity, json } = bounds;
  const lines = new EventLines();
  const splitter = new EventSplitter();
  let total = 0;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      total += chunk.byteLength;
      if (total > maxTotalBytes) {
        controller.error(refuse(`a stream of more than ${maxTotalBytes} bytes`));
        return;
      }
      const { events, ends } = splitter.add(lines.add(chunk));
      let from = 0;
      for (const end of ends) {
        const excess = json ? excessOf(events, from, end) : undefined;
        if (end - from > maxBytes || excess) {
          const what = excess ? `that ${describeExcess(excess)}` : `of more than ${maxBytes} bytes`;
          controller.error(refuse(`an event ${what}`));
          return;
        }
        from = end;
      }
      if (events.length > 0) controller.enqueue(events);
      if (splitter.held > maxBytes) controller.error(refuse(`an event of more than ${maxBytes} bytes`));
    },
    flush(controller) {
      const rest = splitter.rest();
      const excess = json ? excessOf(rest, 0, rest.length) : undefined;
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

/** Drops the byte order mark of a stream, and makes LF of a single CR. CRLF stays. */
class EventLines {
  private position = 0;
  private afterCr = false;

  /** A CR at the end comes with the next chunk. */
  add(chunk: Uint8Array): Buffer {
    if (this.position === BOM.length && !this.afterCr && !chunk.includes(CR))
      return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const out = Buffer.allocUnsafe(chunk.length + 1);
    let length = 0;
    for (const byte of chunk) {
      const isBom = this.position < BOM.length && byte === BOM[this.position];
      this.position = isBom ? this.position + 1 : BOM.length;
      if (isBom) continue;
      if (this.afterCr) out[length++] = byte === LF ? CR : LF;
      this.afterCr = byte === CR;
      if (byte !== CR) out[length++] = byte;
    }
    return out.subarray(0, length);
  }
}

/** Finds where events end. */
class EventSplitter {
  /** Bytes of the incomplete event. */
  held = 0;
  private pieces: Buffer[] = [];
  private isEmptyLine = true;

  /** The events that end in these bytes, each with the empty line after it, and where in them each one ends. */
  add(bytes: Buffer): { events: Buffer; ends: number[] } {
    const ends: number[] = [];
    let end = 0;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i];
      if (byte === LF) {
        if (this.isEmptyLine) ends.push(this.held + (end = i + 1));
        this.isEmptyLine = true;
      } else if (byte !== CR) this.isEmptyLine = false;
    }
    if (end > 0) this.keepPiece(bytes.subarray(0, end));
    const events = end > 0 ? this.rest() : NOTHING;
    this.keepPiece(bytes.subarray(end));
    return { events, ends };
  }

  /** Returns and clears the incomplete event. */
  rest(): Buffer {
    const [first] = this.pieces;
    const event = first && this.pieces.length === 1 ? first : Buffer.concat(this.pieces);
    this.pieces = [];
    this.held = 0;
    return event;
  }

  private keepPiece(piece: Buffer): void {
    if (piece.length === 0) return;
    this.pieces.push(piece);
    this.held += piece.length;
    if (this.pieces.length > MAX_PIECES) this.pieces = [Buffer.concat(this.pieces)];
  }
}

const NOTHING = Buffer.alloc(0);

/** The exceeded bound of the JSON in an event's data, if any. @param from where the event begins @param to where it ends */
function excessOf(bytes: Buffer, from: number, to: number) {
  let scanner: JsonScanner | undefined;
  for (let start = from; start < to;) {
    let end = start;
    while (end < to && bytes[end] !== LF) end += 1;
    if (isData(bytes, start, end)) {
      scanner ??= new JsonScanner();
      const excess = scanner.scan(bytes.subarray(start + DATA.length, end));
      if (excess) return excess;
    }
    start = end + 1;
  }
  return undefined;
}

/** Whether a line has data. */
const isData = (bytes: Buffer, start: number, end: number): boolean =>
  bytes[start] === DATA[0] &&
  end - start >= DATA.length &&
  bytes.compare(DATA, 0, DATA.length, start, start + DATA.length) === 0;
