import type { Socket } from 'node:net';
import type { Connection } from '../http/connection.js';

interface SocketHandle {
  readStop(): void;
  readStart(): void;
}

/**
 * Holds up the reading of connections. One that is held several times is read on when each hold is released. Bytes that arrive meanwhile
 * stay with the kernel, which then lets the peer send no more.
 */
export class HeldReads {
  private readonly holds = new WeakMap<Connection, number>();

  hold(connection: Connection): void {
    this.holds.set(connection, (this.holds.get(connection) ?? 0) + 1);
    this.stop(connection);
  }

  /** Stops the reading again: Node begins to read when it has written. */
  stop({ socket }: Connection): void {
    handleOf(socket)?.readStop();
  }

  release(connection: Connection): void {
    const left = (this.holds.get(connection) ?? 1) - 1;
    this.holds.set(connection, left);
    if (left === 0) handleOf(connection.socket)?.readStart();
  }
}

/**
 * The handle of libuv. A session has taken the socket over, so that `pause()` does nothing. Null: it is closed. `grpc-sessions.spec.ts`
 * fails if a new version of Node keeps it elsewhere.
 */
const handleOf = (socket: Socket): SocketHandle | null =>
  (socket as unknown as { _handle: SocketHandle | null })._handle;
