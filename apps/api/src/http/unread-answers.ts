import { type Logger, type Metrics, PacedLog } from '@baton/telemetry';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from './network-of.js';
import { inNetworks } from './networks.js';

/**
 * Maximum sum of unread answers. Those of large tasks and of streams have bounds of their own. A caller that reads nothing leaves its
 * answers in this process, one on each connection.
 */
const MAX_UNREAD_MB = 64;
/** Time between two checks. An answer that is unread at both has waited for its reader. */
const CHECK_MS = 500;

/** The unread answers of one address. */
interface Readers {
  bytes: number;
  /** Connections that wait for their reader. They are closed in this order. */
  readonly waiting: Socket[];
}

interface UnreadOptions {
  /** A proxy reads for many callers, so each of its connections has a share. */
  readonly trustedProxies: readonly string[];
  readonly maxBytes?: number;
}

/**
 * Bounds the memory of unread answers. An address has at most half of it, as a tenant has of the memory for large reads. If it is full,
 * addresses above an equal share lose connections.
 */
export class UnreadAnswers {
  private readonly sockets = new Set<Socket>();
  /** Bytes that are not in the buffer of the socket. */
  private readonly outside = new WeakMap<Socket, number>();
  private readonly isProxy: (address: string) => boolean;
  private readonly maxBytes: number;
  /** Connections whose answers have waited at the last check, in the order in which they began to. */
  private unread = new Set<Socket>();
  private checkTimer: NodeJS.Timeout | undefined;
  private readonly closings = new PacedLog();

  constructor(
    private readonly logger: Logger,
    private readonly metrics: Metrics,
    { trustedProxies, maxBytes = MAX_UNREAD_MB * 1024 * 1024 }: UnreadOptions,
  ) {
    this.isProxy = inNetworks(trustedProxies);
    this.maxBytes = maxBytes;
  }

  /** Bounds the answers of an HTTP server. */
  limit(server: Server): void {
    server.on('connection', (socket) => this.watch(socket));
  }

  /** Bounds the answers of a connection. */
  watch(socket: Socket): void {
    this.sockets.add(socket);
    this.checkTimer ??= setInterval(() => this.check(), CHECK_MS).unref();
    socket.once('close', () => {
      this.sockets.delete(socket);
      this.unread.delete(socket);
      if (this.sockets.size > 0) return;
      clearInterval(this.checkTimer);
      this.checkTimer = undefined;
    });
  }

  /** HTTP/2 keeps answers outside of the socket. @param change in bytes: above 0 for an answer, below when it was taken */
  note(socket: Socket, change: number): void {
    this.outside.set(socket, (this.outside.get(socket) ?? 0) + change);
  }

  private bytesOf(socket: Socket): number {
    return socket.writableLength + (this.outside.get(socket) ?? 0);
  }

  private check(): void {
    let total = 0;
    const stillUnread = [...this.unread].filter((socket) => this.bytesOf(socket) > 0);
    const unread = new Set(stillUnread);
    for (const socket of this.sockets) {
      const bytes = this.bytesOf(socket);
      if (bytes === 0) continue;
      total += bytes;
      unread.add(socket);
    }
    this.unread = unread;
    if (total > this.maxBytes / 2) this.close(total, new Set(stillUnread));
  }

  /** @param waited connections that may be closed */
  private close(total: number, waited: ReadonlySet<Socket>): void {
    const readers = [...this.byAddress(waited)].sort(([, a], [, b]) => b.bytes - a.bytes);
    const half = this.maxBytes / 2;
    const share = Math.min(half, this.maxBytes / readers.length);
    let left = total;
    for (const [reader, { bytes, waiting }] of readers) {
      let own = bytes;
      for (const socket of waiting) {
        if (own <= (left > this.maxBytes ? share : half)) break;
        const freed = this.bytesOf(socket);
        own -= freed;
        left -= freed;
        socket.destroy();
        this.count(typeof reader === 'string' ? reader : socket.remoteAddress);
      }
    }
  }

  private byAddress(waited: ReadonlySet<Socket>): Map<string | Socket, Readers> {
    const found = new Map<string | Socket, Readers>();
    for (const socket of this.unread) {
      const { remoteAddress = '' } = socket;
      const reader = this.isProxy(remoteAddress) ? socket : networkOf(remoteAddress);
      const readers = found.get(reader) ?? { bytes: 0, waiting: [] };
      found.set(reader, readers);
      readers.bytes += this.bytesOf(socket);
      if (waited.has(socket)) readers.waiting.push(socket);
    }
    return found;
  }

  private count(address: string | undefined): void {
    this.metrics.limitExceeded.inc({ limit: 'unreadAnswers' });
    const text = 'connections are closed: their callers do not read their answers';
    this.closings.note((closed) => this.logger.warn(text, { address, closed, limit: 'unreadAnswers' }));
  }
}
