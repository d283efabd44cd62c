// What a worker and the process of an agent say to each other: JSON, each message behind its length.

/** An error in an agent's code, as its author reads it. Never for its caller. */
export interface ErrorDetail {
  name: string;
  message: string;
  stack?: string;
  /** The last lines that the run has written to its console. */
  output?: string[];
}

/** One turn, as the process of an agent gets it. Messages and tasks are ProtoJSON. */
export interface TurnRequest {
  tenantId: string;
  taskId: string;
  contextId: string;
  message: unknown;
  /** Absent in a task's first turn. */
  task?: unknown;
  referenceTasks?: unknown[];
  /** Extension URIs that the caller asked for and the agent declares. */
  extensions: string[];
}

/** What the worker says to the process. `turn` is a number that the worker has chosen. */
export type ToAgent =
  | { type: 'load'; folder: string; module?: string | undefined }
  | { type: 'turn'; turn: number; request: TurnRequest }
  /** Call `cancelTask`. */
  | { type: 'cancel'; turn: number }
  /** Nobody reads the events of this turn any more. */
  | { type: 'close'; turn: number }
  /** So many characters of events were read. */
  | { type: 'credit'; turn: number; size: number }
  | { type: 'ping' };

/** What the process says to the worker. */
export type FromAgent =
  | { type: 'loaded'; error?: ErrorDetail }
  /** `size` is to be given back as credit. */
  | { type: 'events'; turn: number; size: number; events: unknown[] }
  /** No event of this turn follows. */
  | { type: 'finished'; turn: number }
  /** `execute` has returned, or thrown. The last message of a turn. */
  | { type: 'returned'; turn: number; error?: ErrorDetail }
  /** Nobody has caught it. Without a turn: it is not known whose it is. */
  | { type: 'uncaught'; turn: number | null; error: ErrorDetail }
  | { type: 'cancel-failed'; turn: number; error: ErrorDetail }
  /** A line on the console. */
  | { type: 'line'; turn: number | null; text: string }
  | { type: 'pong' };

/** How much a turn may have on its way to a worker that has not read it yet, in characters of JSON. */
export const WINDOW = 1024 * 1024;
/** Events of one turn that travel in one message, in characters of JSON; one larger event travels alone. */
export const MAX_BATCH = 256 * 1024;

const MAX_TEXT = 4_000;
const MAX_STACK = 16_000;

/** What is known of an error, whatever was thrown, within bounds. */
export function errorDetail(error: unknown): ErrorDetail {
  try {
    if (!(error instanceof Error)) return { name: 'Error', message: cut(String(error), MAX_TEXT) };
    const { name, message, stack, cause } = error;
    const from = cause instanceof Error ? `\nCaused by: ${cause.stack ?? cause.message}` : '';
    return {
      name: cut(textOf(name), 200),
      message: cut(textOf(message), MAX_TEXT),
      ...(typeof stack === 'string' && { stack: cut(stack + from, MAX_STACK) }),
    };
  } catch {
    return { name: 'Error', message: 'The agent threw a value that can not be shown' };
  }
}

/** Agents may put anything there. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : String(value));

/** A frame: the length of the text in bytes (4 bytes, big-endian), then the text in UTF-8. */
export function encodeFrame(json: string): Buffer {
  const length = Buffer.byteLength(json);
  const frame = Buffer.allocUnsafe(4 + length);
  frame.writeUInt32BE(length, 0);
  frame.write(json, 4);
  return frame;
}

/** Finds the frames in a stream of bytes. */
export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  /** @param maxBytes longest text of a frame that is taken */
  constructor(private readonly maxBytes: number) {}

  /** Takes bytes in; returns the texts that are complete. Throws RangeError for a frame that is too long. */
  push(chunk: Buffer): string[] {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const texts: string[] = [];
    for (let length = this.length(); length !== undefined; length = this.length()) {
      if (length > this.maxBytes) throw new RangeError(`a message of ${length} bytes`);
      if (this.size < 4 + length) break;
      const bytes = this.joined();
      texts.push(bytes.toString('utf8', 4, 4 + length));
      this.chunks = [bytes.subarray(4 + length)];
      this.size -= 4 + length;
    }
    return texts;
  }

  private length(): number | undefined {
    if (this.size < 4) return undefined;
    if ((this.chunks[0]?.length ?? 0) < 4) this.chunks = [this.joined()];
    return this.chunks[0]?.readUInt32BE(0);
  }

  private joined(): Buffer {
    const [first] = this.chunks;
    return first && this.chunks.length === 1 ? first : Buffer.concat(this.chunks);
  }
}

export const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most)}…`;
