import type { ConnectionOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { withTimeout } from '../../with-timeout.js';
import { type QuietLog } from '../../quiet-log.js';
import { MessagingUnavailableError } from '../../messaging-unavailable-error.js';
import { isReply, refusedCommand } from './refused-command.js';
import { isCertificateRefused, redisReasonOf, type RedisServer } from './redis-server.js';

/** After this time without a due answer the connection counts as dead and is replaced. */
const SILENCE_MS = 5_000;
/** Redis answers within milliseconds. A probe of readiness waits for the answer. */
export const PING_MS = 2_000;

const reconnectDelay = (tries: number): number => Math.min(50 * 2 ** Math.min(tries, 5), 1_000);

/**
 * Options of a consumer's connections: BullMQ requires them to wait for the server without end.
 * @param readMs how long a read of an empty queue lasts; the connection is silent for so long
 */
export function consumerOptions({ options }: RedisServer, readMs: number): ConnectionOptions {
  return {
    ...options,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelay,
    socketTimeout: readMs + SILENCE_MS,
    connectionName: 'baton-consumer',
  };
}

/** A connection that fails at once while the server is away, and comes back by itself. */
export class RedisConnection {
  readonly client: Redis;
  /** Its channels are sharded: only the nodes of their slot of a Redis Cluster get the messages. */
  readonly isSharded: boolean;
  private readonly address: string;
  private lastError: unknown = 'no connection yet';
  private lost = false;
  private gathered: Redis['stream'] | undefined;

  constructor(
    { address, options, isCluster }: RedisServer,
    private readonly purpose: string,
    private readonly log: QuietLog,
  ) {
    this.client = new Redis({
      ...options,
      lazyConnect: true,
      connectionName: `baton-${purpose}`,
      // No command waits for a server that is away, neither before nor after it is sent.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      connectTimeout: SILENCE_MS,
      socketTimeout: SILENCE_MS,
      retryStrategy: reconnectDelay,
    });
    this.address = address;
    this.isSharded = isCluster;
    this.client.on('error', (error: unknown) => this.noteError(error));
    this.client.on('close', () => this.markLost());
    this.client.on('ready', () => this.markFound());
  }

  get connected(): boolean {
    return this.client.status === 'ready';
  }

  /** Rejects with a plain reason if the server cannot be reached in time; continues to try all the same. */
  async connect(timeoutMs: number): Promise<void> {
    const ready = new Promise<void>((resolve) => this.client.once('ready', resolve));
    this.client.connect().catch((error: unknown) => (this.lastError = error));
    await withTimeout(timeoutMs, ready, 'no answer in time').catch(() => {
      throw this.away();
    });
  }

  /** Rejects with a plain reason if the server does not answer. */
  async ping(): Promise<void> {
    await this.ask(PING_MS, () => this.client.ping());
  }

  /** Why the server refuses a command that Baton needs. Undefined: it refuses none, or it is away. @param key see `refusedCommand` */
  async refusal(key: string): Promise<string | undefined> {
    if (!this.connected) return undefined;
    const asked = refusedCommand(this.client, key, this.isSharded);
    const refused = await withTimeout(PING_MS, asked, 'no answer in time').catch(() => undefined);
    return refused === undefined ? undefined : redisReasonOf(refused);
  }

  /** Its `maxmemory-policy`, if the server deletes keys when it is full. Undefined: it does not, or it is away. */
  async evictionPolicy(): Promise<string | undefined> {
    if (!this.connected) return undefined;
    const info = await withTimeout(PING_MS, this.client.info('memory'), 'no answer in time').catch(() => '');
    const policy = /^maxmemory_policy:([\w-]+)/m.exec(info)?.[1];
    return policy === 'noeviction' ? undefined : policy;
  }

  /** The answer to a command. Rejects with a plain reason without an answer within `ms`, and at once without a connection. */
  async ask<T>(ms: number, command: () => Promise<T>): Promise<T> {
    if (!this.connected) throw this.away();
    try {
      return await withTimeout(ms, command(), 'no answer in time');
    } catch (error) {
      throw this.away(error);
    }
  }

  /** The error for this; it never contains the password of the URL. */
  away(reason: unknown = this.lastError): Error {
    const text = redisReasonOf(reason);
    // ioredis's error when the connection is broken and it has not noticed yet.
    const plain = text.startsWith("Stream isn't writeable") ? 'connection lost' : text;
    return new MessagingUnavailableError(
      `Redis at ${this.address} ${isReply(reason) ? 'answers' : 'does not answer'}: ${plain}`,
    );
  }

  /**
   * The commands from here to the end of this turn of the event loop leave in one packet. A group of runs is claimed at one
   * moment, and each publishes then: a packet for each takes a tenth of the time of a worker.
   */
  gather(): void {
    const { stream } = this.client;
    if (this.gathered === stream) return;
    this.gathered = stream;
    stream.cork();
    process.nextTick(() => {
      this.gathered = undefined;
      stream.uncork();
    });
  }

  /** Calls `listener` when the slot of the subscribed channels has another primary. */
  onMoved(listener: () => void): void {
    this.client.on('moved', listener);
  }

  /** Closes the connection and opens another, to where the server is now. */
  reconnect(): void {
    this.client.disconnect(true);
  }

  /** @returns how many connections have got it */
  async publish(channel: string, text: string): Promise<number> {
    return this.isSharded
      ? Number(await this.client.spublish(channel, text))
      : this.client.publish(channel, text);
  }

  close(): void {
    this.client.removeAllListeners('close');
    this.client.disconnect();
  }

  private noteError(error: unknown): void {
    this.lastError = error;
    // An operator must act. `markLost` reports only that the connection is gone.
    if (isCertificateRefused(error)) {
      this.log.warn(`Redis is not available (${this.purpose})`, redisReasonOf(error));
    }
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
