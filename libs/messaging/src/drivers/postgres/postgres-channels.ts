import { type PgPool, PostgresConnection, type PostgresPoolConfig } from 'bullmq';
import { setTimeout as sleep } from 'node:timers/promises';
import { within, type QuietLog } from '../../channels.js';

const RETRY_MS = 250;
const HEARTBEAT_MS = 5_000;
const CLOSE_MS = 1_000;
/** What may wait for a server that is slow to answer; more is dropped. */
const WAITING_CHARS = 4 * 1024 * 1024;
const BATCH = 500;
/** A statement that takes longer is on a connection that leads nowhere: the next one goes out on another. */
const SEND_MS = 5_000;

/** One LISTEN connection, from its opening until it is lost. */
interface Session {
  connection: PostgresConnection;
  lost: Promise<unknown>;
}

/** What a listener tells. */
interface ListenerEvents {
  notified: (channel: string, payload: string) => void;
  /** The connection was lost and is back: notifications may have been missed. */
  reconnected: () => void;
}

/** The one LISTEN connection of a process. A lost connection is made anew until `close`. */
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
    const closed = this.session?.connection.close() ?? Promise.resolve();
    await within(CLOSE_MS, closed, 'no answer').catch(() => undefined);
  }

  private async keepListening(first: Session): Promise<void> {
    let session = first;
    for (;;) {
      const error = await session.lost;
      this.session = undefined;
      session.connection.close().catch(() => undefined);
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
        await session.connection.close();
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

  private async listen(): Promise<Session> {
    const connection = new PostgresConnection({ ...this.config, max: 1 });
    const lost = new Promise((resolve) => connection.on('error', resolve).on('close', resolve));
    try {
      const client = await connection.getListenClient();
      client.on('notification', ({ channel, payload }) => this.events.notified(channel, payload ?? ''));
      await client.query(this.channels.map((channel) => `LISTEN "${channel}"`).join('; '));
      // It may hear nothing for hours: asking is the only way to notice that the server is gone.
      const beat = (): Promise<unknown> =>
        within(HEARTBEAT_MS, client.query('SELECT 1'), 'no answer in time');
      const timer = setInterval(() => {
        beat().catch((error: unknown) => connection.emit('error', error));
      }, HEARTBEAT_MS);
      timer.unref();
      void lost.then(() => clearInterval(timer));
      return { connection, lost };
    } catch (error) {
      connection.close().catch(() => undefined);
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
