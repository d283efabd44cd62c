import { PostgresPool, type PostgresPoolConfig } from '@baton/postgres';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../../with-timeout.js';
import { type QuietLog } from '../../quiet-log.js';

/** Until the connection is back, readers find events in the log. */
const RETRY_MS = 250;
/** A connection that broke without a sign is noticed within this time. */
const HEARTBEAT_MS = 5_000;
/** A server that does not answer must not hold up the end of the process. */
const CLOSE_MS = 1_000;

/** One LISTEN connection, from its opening until it is lost. */
interface ListenSession {
  lost: Promise<unknown>;
  close(): void;
}

/** Events of a listener. */
interface ListenerEvents {
  notified: (channel: string, payload: string) => void;
  /** The connection was lost and is back: notifications may have been missed. */
  reconnected: () => void;
}

/** The one LISTEN connection of a process. Reconnects until `close`. */
export class PostgresListener {
  private readonly stop = new AbortController();
  private session: ListenSession | undefined;
  /** Of one connection: a lost one counts until Postgres has ended its session. */
  private readonly pool: PostgresPool;

  constructor(
    config: PostgresPoolConfig,
    private readonly channels: readonly string[],
    private readonly events: ListenerEvents,
    private readonly log: QuietLog,
  ) {
    this.pool = new PostgresPool({ ...config, max: 1, answerMs: HEARTBEAT_MS });
    this.pool.on('error', () => undefined);
  }

  get connected(): boolean {
    return this.session !== undefined;
  }

  /** Resolves when it listens; rejects if the server cannot be reached. */
  async start(): Promise<void> {
    this.session = await this.listen();
    void this.keepListening(this.session);
  }

  async close(): Promise<void> {
    this.stop.abort();
    this.session?.close();
    await withTimeout(CLOSE_MS, this.pool.end(), 'no answer').catch(() => undefined);
  }

  private async keepListening(first: ListenSession): Promise<void> {
    let session = first;
    for (;;) {
      const error = await session.lost;
      this.session = undefined;
      session.close();
      if (this.stopped()) return;
      this.log.warn('Postgres notifications lost; connecting again', error);
      const next = (this.session = await this.listenAgain());
      if (!next) return;
      session = next;
      this.log.info('Postgres notifications are back');
      this.events.reconnected();
    }
  }

  private async listenAgain(): Promise<ListenSession | undefined> {
    while (!this.stopped()) {
      try {
        const session = await this.listen();
        if (!this.stopped()) return session;
        session.close();
      } catch (error) {
        this.log.warn('Postgres notifications: no connection', error);
        await sleep(RETRY_MS, undefined, { signal: this.stop.signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  private stopped(): boolean {
    return this.stop.signal.aborted;
  }

  private async listen(): Promise<ListenSession> {
    const client = await this.pool.connect();
    let heartbeat: NodeJS.Timeout | undefined;
    let isClosed = false;
    const close = (): void => {
      clearInterval(heartbeat);
      if (!isClosed) client.release(true);
      isClosed = true;
    };
    try {
      client.on('notification', ({ channel, payload }) => this.events.notified(channel, payload ?? ''));
      const lost = new Promise<unknown>((resolve) => {
        client.on('error', resolve).on('end', () => resolve('the connection has ended'));
        // It may receive nothing for hours: only a question shows that the server is gone.
        heartbeat = setInterval(() => void client.query('SELECT 1').catch(resolve), HEARTBEAT_MS);
        heartbeat.unref();
      });
      await client.query(this.channels.map((channel) => `LISTEN "${channel}"`).join('; '));
      return { lost, close };
    } catch (error) {
      close();
      throw error;
    }
  }
}
