import type { ConnectionOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { within, type QuietLog, ChannelListeners } from '../../channels.js';
import { MessagingUnavailableError, type Subscription } from '../../messaging.js';
import { isCertificateRefused, redisReasonOf, type RedisServer } from './redis-server.js';

/** After this time without a due answer the connection counts as dead and is replaced. */
const SILENCE_MS = 5_000;
const PING_MS = 2_000;

const reconnectDelay = (tries: number): number => Math.min(50 * 2 ** Math.min(tries, 5), 1_000);

/**
 * Options of a consumer's connections: BullMQ wants them to wait for the server without end.
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

  /** Why the server refuses to write this key. Undefined: it writes it, for a second, or it is away. */
  async refusal(key: string): Promise<string | undefined> {
    if (!this.connected) return undefined;
    return within(PING_MS, this.client.set(key, '1', 'PX', 1_000), 'no answer in time').then(
      () => undefined,
      (error: unknown) => (isReply(error) ? redisReasonOf(error) : undefined),
    );
  }

  /** Its `maxmemory-policy`, if the server deletes keys when it is full. Undefined: it does not, or it is away. */
  async evictionPolicy(): Promise<string | undefined> {
    if (!this.connected) return undefined;
    const info = await within(PING_MS, this.client.info('memory'), 'no answer in time').catch(() => '');
    const policy = /^maxmemory_policy:([\w-]+)/m.exec(info)?.[1];
    return policy === 'noeviction' ? undefined : policy;
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
    // An operator must act. `markLost` knows no more than that the connection is gone.
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

/** Whether the server has answered, with an error. */
const isReply = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError';

const BATCH = 1_000;
const HEARTBEAT_MS = 5_000;

/**
 * The one subscriber connection of a process. SUBSCRIBE and UNSUBSCRIBE calls of one turn of the event loop go
 * out together; after a lost connection every channel is subscribed again, then the reconnect listeners are
 * told.
 */
export class RedisChannels {
  private readonly listeners = new ChannelListeners();
  /** Channel → the batch whose SUBSCRIBE for it was the last word on this connection. */
  private readonly sent = new Map<string, number>();
  private readonly inForce = new Set<string>();
  /** Of subscriptions that are not in force yet, by channel. */
  private readonly waiting = new Map<string, Set<() => void>>();
  private changed = new Set<string>();
  private batch = 0;
  private wasReady = false;
  private readonly heartbeat: NodeJS.Timeout;

  constructor(
    private readonly connection: RedisConnection,
    private readonly reconnected: () => void,
    private readonly log: QuietLog,
  ) {
    const { client, isSharded } = connection;
    client.on(isSharded ? 'smessage' : 'message', (channel: string, text: string) =>
      this.receive(channel, text),
    );
    client.on('close', () => this.forget());
    client.on('ready', () => void this.restore());
    // A subscriber may receive nothing for hours: only a question shows that the server is gone.
    this.heartbeat = setInterval(() => void client.ping().catch(() => undefined), HEARTBEAT_MS);
    this.heartbeat.unref();
  }

  /** In force when the server has acknowledged it (after its return, if it is away). */
  subscribe(channel: string, listener: (text: string) => void): Subscription {
    if (this.listeners.add(channel, listener)) this.change(channel);
    let acknowledge = (): void => undefined;
    const inForce = new Promise<void>((resolve) => (acknowledge = resolve));
    if (this.inForce.has(channel)) acknowledge();
    else this.await(channel, acknowledge);
    const end = (): void => {
      // Calls come and go while the server is away: nothing may stay of them until it is back.
      this.waiting.get(channel)?.delete(acknowledge);
      if (!this.listeners.remove(channel, listener)) return;
      this.waiting.delete(channel);
      this.change(channel);
    };
    return { inForce, end };
  }

  /** Resolves when the server sends nothing more on the channel. Its listeners have all that was published before. */
  async drain(channel: string): Promise<void> {
    const { client, isSharded } = this.connection;
    const leave = () => (isSharded ? client.sunsubscribe(channel) : client.unsubscribe(channel));
    // A server that is away sends nothing either.
    await this.connection.ask(PING_MS, leave).catch(() => undefined);
  }

  close(): void {
    clearInterval(this.heartbeat);
    this.connection.close();
    for (const channel of this.waiting.keys()) this.resolveWaiting(channel);
  }

  private receive(channel: string, text: string): void {
    this.listeners.dispatch(channel, text, (error) => this.log.warn('channel listener failed', error));
  }

  private await(channel: string, acknowledge: () => void): void {
    const waiting = this.waiting.get(channel);
    if (waiting) waiting.add(acknowledge);
    else this.waiting.set(channel, new Set([acknowledge]));
  }

  private resolveWaiting(channel: string): void {
    const waiting = this.waiting.get(channel) ?? [];
    this.waiting.delete(channel);
    for (const acknowledge of waiting) acknowledge();
  }

  private change(channel: string): void {
    if (this.changed.size === 0) setImmediate(() => void this.flush());
    this.changed.add(channel);
  }

  /** Sends what changed. While the server is away nothing is sent: `restore` sends everything on its return. */
  private async flush(): Promise<void> {
    const changed = [...this.changed];
    this.changed = new Set();
    if (!this.connection.connected) return;
    const gone = changed.filter((channel) => this.sent.has(channel) && !this.listeners.has(channel));
    const added = changed.filter((channel) => this.isNew(channel));
    for (const channel of gone) {
      this.sent.delete(channel);
      this.inForce.delete(channel);
    }
    // Both in one packet.
    if (gone.length > 0 && added.length > 0) this.connection.gather();
    const { client, isSharded } = this.connection;
    if (gone.length > 0) {
      (isSharded ? client.sunsubscribe(...gone) : client.unsubscribe(...gone)).catch(() => undefined);
    }
    if (added.length > 0) await this.sendSubscribe(added);
  }

  private isNew(channel: string): boolean {
    return !this.sent.has(channel) && this.listeners.has(channel);
  }

  private async sendSubscribe(channels: string[]): Promise<void> {
    const batch = ++this.batch;
    for (const channel of channels) this.sent.set(channel, batch);
    try {
      const { client, isSharded } = this.connection;
      await (isSharded ? client.ssubscribe(...channels) : client.subscribe(...channels));
    } catch (error) {
      // A lost connection: `restore` follows. Any other error, such as a missing permission, must be logged.
      this.log.warn('SUBSCRIBE failed', error);
      return;
    }
    for (const channel of channels) {
      if (this.sent.get(channel) !== batch) continue;
      this.inForce.add(channel);
      this.resolveWaiting(channel);
    }
  }

  private forget(): void {
    this.sent.clear();
    this.inForce.clear();
  }

  /** A new connection knows no channels. */
  private async restore(): Promise<void> {
    const channels = this.listeners.channels();
    for (let from = 0; from < channels.length; from += BATCH) {
      const wanted = channels.slice(from, from + BATCH).filter((channel) => this.isNew(channel));
      if (wanted.length > 0) await this.sendSubscribe(wanted);
    }
    if (!this.connection.connected) return;
    if (this.wasReady) this.reconnected();
    this.wasReady = true;
  }
}
