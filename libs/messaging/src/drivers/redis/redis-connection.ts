import type { ConnectionOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { within, type QuietLog, reasonOf } from '../../outages.js';
import { MessagingUnavailableError } from '../../messaging.js';

/** No answer for this long while one is due: the connection is dead and is made anew. */
const SILENCE_MS = 5_000;
const PING_MS = 2_000;

const reconnectDelay = (tries: number): number => Math.min(50 * 2 ** Math.min(tries, 5), 1_000);

/** Options of a consumer's connections: BullMQ wants them to wait for the server without end. */
export function consumerOptions(url: string): ConnectionOptions {
  return {
    url,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelay,
    // Longer than BullMQ's blocking read of five seconds.
    socketTimeout: 2 * SILENCE_MS,
    connectionName: 'baton-consumer',
  };
}

/** A connection that fails at once while the server is away, and comes back by itself. */
export class RedisConnection {
  readonly client: Redis;
  private readonly address: string;
  private lastError: unknown = 'no connection yet';
  private lost = false;

  constructor(
    url: string,
    private readonly purpose: string,
    private readonly log: QuietLog,
  ) {
    this.client = new Redis(url, {
      lazyConnect: true,
      connectionName: `baton-${purpose}`,
      // Nothing waits for a server that is away: neither before it is sent, nor after.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      connectTimeout: SILENCE_MS,
      socketTimeout: SILENCE_MS,
      retryStrategy: reconnectDelay,
    });
    const { host, port, path } = this.client.options;
    this.address = path ?? `${host}:${port}`;
    this.client.on('error', (error: unknown) => (this.lastError = error));
    this.client.on('close', () => this.markLost());
    this.client.on('ready', () => this.markFound());
  }

  get connected(): boolean {
    return this.client.status === 'ready';
  }

  /** Rejects with a plain reason if the server can't be reached in time; goes on trying all the same. */
  async connect(timeoutMs: number): Promise<void> {
    const ready = new Promise<void>((resolve) => this.client.once('ready', resolve));
    this.client.connect().catch((error: unknown) => (this.lastError = error));
    await within(timeoutMs, ready, 'no answer in time').catch(() => {
      throw this.away();
    });
  }

  /** Rejects with a plain reason if the server does not answer. */
  async ping(): Promise<void> {
    await this.ask(PING_MS, () => this.client.ping());
  }

  /** What the command answers; rejects with a plain reason if it does not within `ms`, at once if nobody is there. */
  async ask<T>(ms: number, command: () => Promise<T>): Promise<T> {
    if (!this.connected) throw this.away();
    try {
      return await within(ms, command(), 'no answer in time');
    } catch (error) {
      throw this.away(error);
    }
  }

  /** The error that says so; never holds the password of the URL. */
  away(reason: unknown = this.lastError): Error {
    const text = reasonOf(reason);
    // What ioredis says in the moment between a broken connection and its notice of it.
    const plain = text.startsWith("Stream isn't writeable") ? 'connection lost' : text;
    const answered = reason instanceof Error && reason.name === 'ReplyError';
    return new MessagingUnavailableError(
      `Redis at ${this.address} ${answered ? 'answers' : 'does not answer'}: ${plain}`,
    );
  }

  close(): void {
    this.client.removeAllListeners('close');
    this.client.disconnect();
  }

  private markLost(): void {
    if (this.lost) return;
    this.lost = true;
    this.log.warn(`Redis connection lost (${this.purpose})`, this.lastError);
  }

  private markFound(): void {
    if (this.lost) this.log.info(`Redis connection is back (${this.purpose})`);
    this.lost = false;
    this.lastError = 'connection lost';
  }
}
