import { ChannelListeners } from '../../channel-listeners.js';
import { type QuietLog } from '../../quiet-log.js';
import { type Subscription } from '../../messaging.js';
import { RedisConnection, PING_MS } from './redis-connection.js';
import { isReply } from './refused-command.js';

/** Channels of one command: Redis serves no other client while it runs. */
const BATCH = 1_000;
/** A silent connection gets an answer this often, so that a dead one is noticed. */
const HEARTBEAT_MS = 5_000;

/**
 * The one subscriber connection of a process. SUBSCRIBE and UNSUBSCRIBE calls of one turn of the event loop go out together; after
 * a lost connection every channel is subscribed again, then the reconnect listeners are called.
 */
export class RedisChannels {
  private readonly listeners = new ChannelListeners();
  /** Channel → the batch whose SUBSCRIBE for it was the last word on this connection. */
  private readonly sent = new Map<string, number>();
  private readonly inForce = new Set<string>();
  /** Callbacks of subscriptions that are not in force yet, by channel. */
  private readonly waiting = new Map<string, Set<() => void>>();
  private changed = new Set<string>();
  private batch = 0;
  private wasReady = false;
  private refused: Error | undefined;
  private onRefused: (error: Error) => void = () => undefined;
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

  /** The error with which the server has refused the last SUBSCRIBE, such as a missing right. */
  get refusal(): unknown {
    return this.refused;
  }

  /** Rejects with the server's error when it refuses a SUBSCRIBE. */
  untilRefused(): Promise<never> {
    return new Promise((_resolve, reject) => (this.onRefused = reject));
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

  /** Sends changed subscriptions. While the server is away it sends nothing: `restore` sends all of them on its return. */
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
      if (isReply(error)) this.onRefused((this.refused = error));
      return;
    }
    this.refused = undefined;
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

  /** A new connection has no subscriptions. */
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
