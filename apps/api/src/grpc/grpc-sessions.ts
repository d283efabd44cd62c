import type { Logger, Metrics } from '@baton/telemetry';
import type { Server } from '@grpc/grpc-js';
import { constants, type Http2Server, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { CallTurns } from '../http/call-turns.js';
import type { Connection } from '../http/connection.js';

/** After this many new calls in a turn of the event loop, connections are not read any more in this turn. */
const CALLS_A_READ = 32;
/** Maximum resets of a peer within `WINDOW_MS`, as a multiple of the calls that it may have open. A peer that leaves resets them once. */
const RESETS = 2;
const WINDOW_MS = 1_000;
/** Maximum bytes that a connection may bring without a call. An idle peer sends a PING now and then. */
const BYTES_WITHOUT_CALL = 262_144;
const LOOK_MS = 50;
const LOG_EVERY_MS = 10_000;

/** Resets of a session's peer. */
interface Resets {
  count: number;
  /** End of the window, by `performance.now()`. */
  until: number;
}

interface SocketHandle {
  readStop(): void;
  readStart(): void;
}

interface GrpcSessionsOptions {
  /** Finds the connection of a session. */
  connectionOf: (session: Http2Session) => Connection | undefined;
  /** All connections. */
  all: () => Iterable<Connection>;
  turns: CallTurns<Connection | undefined>;
  /** Calls that a peer may have open. */
  maxCalls: number;
  logger: Logger;
  metrics: Metrics;
}

/**
 * Bounds calls and bytes of the HTTP/2 sessions below grpc-js. One read of a connection (64 KiB) may have a thousand calls, each
 * reset at once ("rapid reset", CVE-2023-44487), so that the limit of open calls never holds; and libuv reads a connection up to 32
 * times before it looks at others. So connections are not read on while many calls have come in, or wait for their turns, and a
 * session whose peer resets too many is closed.
 */
export class GrpcSessions {
  private calls = 0;
  private isScheduled = false;
  private loggedAt = -Infinity;
  private readonly unread = new Set<Connection>();
  private readonly resets = new WeakMap<Http2Session, Resets>();
  private looking: NodeJS.Timeout | undefined;
  private lookedAt = -Infinity;
  /** Bytes that a connection had brought when it was last seen with a call. */
  private readonly bytesWithCalls = new WeakMap<Connection, number>();

  constructor(
    server: Server,
    private readonly options: GrpcSessionsOptions,
  ) {
    for (const http2Server of http2ServersOf(server)) {
      http2Server.prependListener('stream', this.onStream);
      http2Server.on('session', () => (this.looking ??= setInterval(this.look, LOOK_MS).unref()));
    }
  }

  private readonly onStream = (stream: ServerHttp2Stream): void => {
    const { session } = stream;
    if (!session) return;
    stream.once('close', () => {
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) this.onReset(session);
    });
    this.calls += 1;
    this.schedule();
    if (this.calls >= CALLS_A_READ) for (const connection of this.options.all()) this.stopReading(connection);
  };

  private onReset(session: Http2Session): void {
    if (session.closed || session.destroyed) return;
    const now = performance.now();
    let resets = this.resets.get(session);
    if (!resets || now > resets.until) {
      resets = { count: 0, until: now + WINDOW_MS };
      this.resets.set(session, resets);
    }
    resets.count += 1;
    if (resets.count > RESETS * this.options.maxCalls) this.end(session);
  }

  /** New calls of the session are refused from now on, and its open ones end. */
  private end(session: Http2Session): void {
    const connection = this.options.connectionOf(session);
    this.log('a connection of gRPC is closed: its peer has reset too many calls', 'grpcResets', connection);
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    session.close();
    // The peer may still read why.
    setImmediate(() => connection?.socket.destroy());
  }

  /**
   * Closes connections that bring many bytes and no calls: WINDOW_UPDATE, PRIORITY, frames of unknown types, and calls that nghttp2 refuses
   * for their headers. None of them reaches JavaScript, and none has a bound in nghttp2.
   */
  private readonly look = (): void => {
    let count = 0;
    for (const connection of this.options.all()) {
      count += 1;
      const { bytesRead } = connection.socket;
      const before = this.bytesWithCalls.get(connection) ?? 0;
      if (!connection.isSilentSince(this.lookedAt)) this.bytesWithCalls.set(connection, bytesRead);
      else if (bytesRead - before > BYTES_WITHOUT_CALL) {
        this.log(
          'a connection of gRPC is closed: its peer sends frames without calls',
          'grpcFrames',
          connection,
        );
        connection.socket.destroy();
      }
    }
    this.lookedAt = performance.now();
    if (count > 0) return;
    clearInterval(this.looking);
    this.looking = undefined;
  };

  private log(text: string, limit: string, connection: Connection | undefined): void {
    this.options.metrics.limitExceeded.inc({ limit });
    const now = performance.now();
    if (now - this.loggedAt < LOG_EVERY_MS) return;
    this.loggedAt = now;
    this.options.logger.warn(text, { address: connection?.address });
  }

  private stopReading(connection: Connection): void {
    if (this.unread.has(connection)) return;
    this.unread.add(connection);
    handleOf(connection.socket)?.readStop();
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(this.onNextTurn);
  }

  /** Connections whose calls still wait for their turns are read later. */
  private readonly onNextTurn = (): void => {
    this.isScheduled = false;
    this.calls = 0;
    for (const connection of this.unread) {
      if (this.options.turns.isWaiting(connection)) continue;
      this.unread.delete(connection);
      handleOf(connection.socket)?.readStart();
    }
    if (this.unread.size > 0) this.schedule();
  };
}

/** Private members of grpc-js. `grpc-sessions.spec.ts` fails if a new version has other members. */
const http2ServersOf = (server: Server): Iterable<Http2Server> =>
  (server as unknown as { http2Servers: Map<Http2Server, unknown> }).http2Servers.keys();

/** The handle of libuv. A session has taken the socket over, so that `pause()` does nothing. Null: it is closed. */
const handleOf = (socket: Socket): SocketHandle | null =>
  (socket as unknown as { _handle: SocketHandle | null })._handle;
