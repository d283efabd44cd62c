import { type Logger, type Metrics, PacedLog } from '@baton/telemetry';
import type { Server } from '@grpc/grpc-js';
import {
  constants,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { CallTurns } from '../http/call-turns.js';
import type { Connection } from '../http/connection.js';
import { FrameBudgets } from './frame-budgets.js';
import { HeldReads } from './held-reads.js';
import { PendingCalls } from './pending-calls.js';

/** After this many new calls in a turn of the event loop, connections are not read any more in this turn. */
const CALLS_A_READ = 32;
/** Maximum resets of a peer within `WINDOW_MS`, as a multiple of the calls that it may have open. A peer that leaves resets them once. */
const RESETS = 2;
/** Short, so that an attack is seen within a second. */
const WINDOW_MS = 1_000;
/** Pause between two checks of all connections, in ms. */
const CHECK_MS = 50;

/** The calls of a session. */
interface Calls {
  /** Calls that have had their turns. */
  begun: number;
  /** Calls that were reset before their turns. As many as may be open are allowed, and one more for each call that has begun. */
  early: number;
  /** Calls that were reset within the window. */
  resets: number;
  /** End of the window, by `performance.now()`. */
  until: number;
}

/** A call that grpc-js has not seen. */
interface NewCall {
  readonly stream: ServerHttp2Stream;
  readonly connection: Connection | undefined;
  readonly begin: () => void;
}

type NewStream = [stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...others: unknown[]];

interface GrpcSessionsOptions {
  /** Finds the connection of a session. */
  connectionOf: (session: Http2Session) => Connection | undefined;
  /** All connections. */
  all: () => Iterable<Connection>;
  /** Calls that a peer may have open. */
  maxCalls: number;
  logger: Logger;
  metrics: Metrics;
}

/**
 * Bounds calls and bytes of the HTTP/2 sessions below grpc-js. One read of a connection (64 KiB) may have a thousand calls, each reset at
 * once ("rapid reset", CVE-2023-44487): the limit of open calls never holds. libuv reads a connection up to 32 times before it reads
 * others. So grpc-js gets calls in turns, and never those that were reset before. Connections are not read on while many calls have come
 * in, or wait for their turns. A session with too many resets is closed.
 */
export class GrpcSessions {
  private readonly turns = new CallTurns<Connection | undefined>();
  private readonly reads = new HeldReads();
  private readonly frames: FrameBudgets;
  private readonly pending: PendingCalls;
  private readonly connections = new WeakMap<Http2Session, Connection>();
  private readonly calls = new WeakMap<Http2Session, Calls>();
  /** Calls that arrived in this turn of the event loop. */
  private newCalls: NewCall[] = [];
  private isScheduled = false;
  private readonly unread = new Set<Connection>();
  private checkTimer: NodeJS.Timeout | undefined;
  /** By the name of the limit. */
  private readonly logs = new Map<string, PacedLog>();

  constructor(
    server: Server,
    private readonly options: GrpcSessionsOptions,
  ) {
    this.frames = new FrameBudgets(this.reads, (connection) =>
      this.log(
        'a connection of gRPC is read slowly: its peer sends many frames without messages',
        'grpcFrames',
        connection,
      ),
    );
    this.pending = new PendingCalls(({ session }) =>
      this.log(
        'a call of gRPC is refused: too many wait for their messages',
        'grpcPendingCalls',
        session && this.connections.get(session),
      ),
    );
    for (const http2Server of http2ServersOf(server)) this.watch(http2Server);
  }

  /** A part of a message has come in. */
  received(connection: Connection, bytes: number): void {
    this.frames.received(connection, bytes);
  }

  private watch(http2Server: Http2Server): void {
    const listeners = http2Server.listeners('stream') as ((...event: NewStream) => void)[];
    http2Server.removeAllListeners('stream');
    http2Server.on('stream', (...event: NewStream) =>
      this.onStream(event, () => {
        for (const listener of listeners) listener(...event);
      }),
    );
    http2Server.prependListener('session', (session) => {
      const connection = this.options.connectionOf(session);
      if (connection) this.connections.set(session, connection);
      this.checkTimer ??= setInterval(this.check, CHECK_MS).unref();
    });
  }

  private onStream([stream, headers]: NewStream, begin: () => void): void {
    const { session } = stream;
    if (!session) return;
    const connection = this.connections.get(session);
    connection?.began();
    const calls = this.callsOf(session);
    let hasBegun = false;
    // A call that was reset before its turn has no listener of grpc-js.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      connection?.ended();
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) this.onReset(session, calls, !hasBegun);
    });
    if (connection) this.frames.called(connection, headers);
    this.pending.add(stream, connection?.address ?? session);
    this.newCalls.push({
      stream,
      connection,
      begin: () => {
        if (isOver(stream)) return;
        hasBegun = true;
        calls.begun += 1;
        begin();
        // A stream without a message has ended before grpc-js could listen.
        if (stream.readableEnded) stream.emit('end');
      },
    });
    this.schedule();
    if (this.newCalls.length === CALLS_A_READ) this.holdAll();
  }

  private callsOf(session: Http2Session): Calls {
    let calls = this.calls.get(session);
    if (!calls) {
      calls = { begun: 0, early: 0, resets: 0, until: 0 };
      this.calls.set(session, calls);
    }
    return calls;
  }

  private onReset(session: Http2Session, calls: Calls, isEarly: boolean): void {
    if (session.closed || session.destroyed) return;
    const now = performance.now();
    if (now > calls.until) Object.assign(calls, { resets: 0, until: now + WINDOW_MS });
    calls.resets += 1;
    if (isEarly) calls.early += 1;
    const { maxCalls } = this.options;
    if (calls.resets > RESETS * maxCalls || calls.early > maxCalls + calls.begun) this.end(session);
  }

  /** Its open calls end, and nghttp2 reads no more of its frames. */
  private end(session: Http2Session): void {
    const connection = this.connections.get(session);
    const text = 'a connection of gRPC is closed: too many of its calls were reset';
    this.log(text, 'grpcResets', connection);
    session.destroy(new Error(text), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  private readonly check = (): void => {
    const connections = [...this.options.all()];
    this.frames.check(connections);
    if (connections.length > 0) return;
    clearInterval(this.checkTimer);
    this.checkTimer = undefined;
  };

  private log(text: string, limit: string, connection: Connection | undefined): void {
    this.options.metrics.limitExceeded.inc({ limit });
    const log = this.logs.get(limit) ?? new PacedLog();
    this.logs.set(limit, log);
    log.note(() => this.options.logger.warn(text, { address: connection?.address }));
  }

  private holdAll(): void {
    for (const connection of this.options.all()) {
      if (this.unread.has(connection)) continue;
      this.unread.add(connection);
      this.reads.hold(connection);
    }
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(this.onNextTurn);
  }

  /** Connections whose calls still wait for their turns are read later. */
  private readonly onNextTurn = (): void => {
    this.isScheduled = false;
    const { newCalls } = this;
    this.newCalls = [];
    for (const { stream, connection, begin } of newCalls) {
      // Of a rapid reset, most are over.
      if (isOver(stream)) continue;
      const leave = this.turns.take(connection, begin);
      if (leave) stream.once('close', leave);
    }
    for (const connection of this.unread) {
      if (this.turns.isWaiting(connection)) continue;
      this.unread.delete(connection);
      this.reads.release(connection);
    }
    if (this.unread.size > 0) this.schedule();
  };
}

const isOver = ({ closed, destroyed }: ServerHttp2Stream): boolean => closed || destroyed;

/** Private members of grpc-js. `grpc-sessions.spec.ts` fails if a new version has other members. */
const http2ServersOf = (server: Server): Iterable<Http2Server> =>
  (server as unknown as { http2Servers: Map<Http2Server, unknown> }).http2Servers.keys();
