import { type PgPool, type PgPoolClient, PostgresConnection, type PostgresPoolConfig } from 'bullmq';
import { setTimeout as sleep } from 'node:timers/promises';
import { within, type QuietLog } from '../../channels.js';

const RETRY_MS = 250;
const HEARTBEAT_MS = 5_000;
const CLOSE_MS = 1_000;
/** Maximum that waits for a slow server. More is dropped. */
const WAITING_CHARS = 4 * 1024 * 1024;
const BATCH = 500;
/** If a statement takes longer, its connection counts as dead. The next statement uses another one. */
const SEND_MS = 5_000;

/** One LISTEN connection, from its opening until it is lost. */
interface Session {
  lost: Promise<unknown>;
  close(): Promise<void>;
}

/** What a listener tells. */
interface ListenerEvents {
  notified: (channel: string, payload: string) => void;
  /** The connection was lost and is back: notifications may have been missed. */
  reconnected: () => void;
}

/** The one LISTEN connection of a process. Reconnects until `close`. */
export class PostgresListener {
  private readonly stop = new AbortController();
  private session: Session | undefined;

  constructor(
    private readonly config: PostgresPoolConfig,
    private readonly channels: readonly string[],
    private readonly events: ListenerEvents,
    private readonly log: QuietLog,
  ) {}

  get connected(): boolean {
    return this.session !== undefined;
  }

  /** Resolves when it listens; rejects if the server can't be reached. */
  async start(): Promise<void> {
    this.session = await this.listen();
    void this.keepListening(this.session);
  }

  async close(): Promise<void> {
    this.stop.abort();
    const closed = this.session?.close() ?? Promise.resolve();
    await within(CLOSE_MS, closed, 'no answer').catch(() => undefined);
  }

  private async keepListening(first: Session): Promise<void> {
    let session = first;
    for (;;) {
      const error = await session.lost;
      this.session = undefined;
      session.close().catch(() => undefined);
      if (this.stopped()) return;
      this.log.warn('Postgres notifications lost; connecting again', error);
      const next = (this.session = await this.listenAgain());
      if (!next) return;
      session = next;
      this.log.info('Postgres notifications are back');
      this.events.reconnected();
    }
  }

  private async listenAgain(): Promise<Session | undefined> {
    while (!this.stopped()) {
      try {
        const session = await this.listen();
        if (!this.stopped()) return session;
        await session.close();
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

  /**
   * The connection comes from a pool of one. A client of its own would have no listener of errors for a moment after it
   * has connected, and an error in that moment ends the process; the pool's `onConnect` comes before that moment.
   */
  private async listen(): Promise<Session> {
    const { pool } = new PostgresConnection({ ...this.config, max: 1 });
    let opened: PgPoolClient | undefined;
    let heartbeat: NodeJS.Timeout | undefined;
    const close = async (): Promise<void> => {
      clearInterval(heartbeat);
      opened?.release(true);
      opened = undefined;
      await pool.end();
    };
    try {
      const client = (opened = await pool.connect());
      client.on('notification', ({ channel, payload }) => this.events.notified(channel, payload ?? ''));
      const lost = new Promise<unknown>((resolve) => {
        client.on('error', resolve).on('end', () => resolve('the connection has ended'));
        // It may receive nothing for hours: only a question shows that the server is gone.
        heartbeat = setInterval(() => {
          within(HEARTBEAT_MS, client.query('SELECT 1'), 'no answer in time').catch(resolve);
        }, HEARTBEAT_MS);
        heartbeat.unref();
      });
      await client.query(this.channels.map((channel) => `LISTEN "${channel}"`).join('; '));
      return { lost, close };
    } catch (error) {
      close().catch(() => undefined);
      throw error;
    }
  }
}

interface Notification {
  channel: string;
  payload: string;
  done: () => void;
}

/**
 * Sends notifications in the order they came: one statement at a time, each with everything that came while
 * the one before was under way (a commit with NOTIFY takes a lock on the whole database, so few are better
 * than many).
 */
export class PostgresPublisher {
  private waiting: Notification[] = [];
  private chars = 0;
  private sending = false;

  constructor(
    private readonly pool: PgPool,
    private readonly log: QuietLog,
  ) {}

  /** Resolves when sent or dropped; never rejects. */
  async publish(channel: string, payload: string): Promise<void> {
    if (this.chars > WAITING_CHARS) return;
    this.chars += payload.length;
    const done = new Promise<void>((resolve) => this.waiting.push({ channel, payload, done: resolve }));
    if (!this.sending) void this.send();
    await done;
  }

  private async send(): Promise<void> {
    this.sending = true;
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, BATCH);
      try {
        const sent = this.pool.query(
          'SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS n(c, p)',
          [batch.map(({ channel }) => channel), batch.map(({ payload }) => payload)],
        );
        await within(SEND_MS, sent, 'no answer in time');
      } catch (error) {
        this.log.warn('signals not published', error);
      }
      for (const { payload, done } of batch) {
        this.chars -= payload.length;
        done();
      }
    }
    this.sending = false;
  }
}
