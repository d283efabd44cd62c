import type { Connection } from '../http/connection.js';
import type { HeldReads } from './held-reads.js';

/** Bytes beside messages that a connection may bring in a second, on average. */
const FRAME_BYTES_PER_SECOND = 65_536;
/** Bytes beside messages that it may bring at once. */
const FRAME_BYTES = 262_144;
/** A peer that reads acknowledges with frames: a byte for a number of bytes that it was sent. */
const SENT_BYTES_A_BYTE = 4;

/** What a connection may still bring beside messages. */
interface Budget {
  bytes: number;
  /** What the headers and messages of its calls have added since it was last looked at. */
  added: number;
  /** The bytes of the socket when it was last looked at. */
  read: number;
  written: number;
  isPaused: boolean;
}

/**
 * Bounds the HTTP/2 frames that bring no message: WINDOW_UPDATE, PING, SETTINGS, PRIORITY, empty DATA, frames of unknown types, and calls
 * that nghttp2 refuses for their headers. None of them reaches JavaScript. So the bytes of a socket are compared with those of its
 * messages from time to time. A connection that has brought too many others is not read until its budget has grown again.
 */
export class FrameBudgets {
  private readonly budgets = new WeakMap<Connection, Budget>();
  private checkedAt = performance.now();

  /** @param onPaused called when a connection is not read for a while */
  constructor(
    private readonly reads: HeldReads,
    private readonly onPaused: (connection: Connection) => void,
  ) {}

  /** The headers of a call have come in. */
  called(connection: Connection, headers: Readonly<Record<string, unknown>>): void {
    let bytes = 0;
    for (const [name, value] of Object.entries(headers)) bytes += name.length + String(value).length;
    this.budgetOf(connection).added += 2 * bytes;
  }

  /** A part of a message has come in. A peer may send as many bytes beside it: frames have heads, and TLS adds some. */
  received(connection: Connection, bytes: number): void {
    this.budgetOf(connection).added += 2 * bytes;
  }

  /** Checks the budgets of all open connections. */
  check(connections: Iterable<Connection>): void {
    const now = performance.now();
    const grown = ((now - this.checkedAt) / 1_000) * FRAME_BYTES_PER_SECOND;
    this.checkedAt = now;
    for (const connection of connections) this.update(connection, grown);
  }

  private update(connection: Connection, grown: number): void {
    const budget = this.budgetOf(connection);
    const { bytesRead, bytesWritten } = connection.socket;
    budget.bytes += grown + budget.added + (bytesWritten - budget.written) / SENT_BYTES_A_BYTE;
    budget.bytes = Math.min(budget.bytes - (bytesRead - budget.read), FRAME_BYTES);
    Object.assign(budget, { added: 0, read: bytesRead, written: bytesWritten });
    const isOver = budget.bytes < 0;
    if (isOver && budget.isPaused) this.reads.stop(connection);
    if (isOver === budget.isPaused) return;
    budget.isPaused = isOver;
    if (!isOver) return this.reads.release(connection);
    this.reads.hold(connection);
    this.onPaused(connection);
  }

  private budgetOf(connection: Connection): Budget {
    let budget = this.budgets.get(connection);
    if (!budget) {
      budget = { bytes: FRAME_BYTES, added: 0, read: 0, written: 0, isPaused: false };
      this.budgets.set(connection, budget);
    }
    return budget;
  }
}
