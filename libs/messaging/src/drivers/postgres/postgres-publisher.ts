import { PostgresPool, untilStatementEnded } from '@baton/postgres';
import { setTimeout as delay } from 'node:timers/promises';
import { type QuietLog } from '../../quiet-log.js';

/** Maximum characters of signals that wait for a slow server. Further signals are dropped. */
const WAITING_CHARS = 4 * 1024 * 1024;
/** Maximum number of signals of one statement. */
const BATCH = 500;
/** Pause between two tries to publish that signals were dropped, in ms. */
const TELL_MS = 500;

interface Notification {
  channel: string;
  payload: string;
}

interface QueuedNotification extends Notification {
  done: () => void;
}

/**
 * Sends notifications in their order, one statement at a time. A statement has all notifications that came during the one before: a
 * commit with NOTIFY takes a lock on the whole database.
 */
export class PostgresPublisher {
  private waiting: QueuedNotification[] = [];
  private chars = 0;
  private sending = false;
  /** Notifications were dropped, and no listener has got the notice yet. */
  private hasDropped = false;

  constructor(
    private readonly pool: PostgresPool,
    private readonly log: QuietLog,
    /** Sent as soon as Postgres takes it, when notifications were dropped. */
    private readonly dropped: Notification,
  ) {}

  /** Resolves when sent or dropped; never rejects. */
  async publish(channel: string, payload: string): Promise<void> {
    if (this.chars > WAITING_CHARS) {
      this.hasDropped = true;
      return;
    }
    this.chars += payload.length;
    const done = new Promise<void>((resolve) => this.waiting.push({ channel, payload, done: resolve }));
    if (!this.sending) void this.send();
    await done;
  }

  private async send(): Promise<void> {
    this.sending = true;
    while (this.waiting.length > 0 || (this.hasDropped && !this.pool.ending)) {
      const batch = this.waiting.splice(0, BATCH);
      const isTold = this.hasDropped;
      this.hasDropped = false;
      if (!(await this.notify(isTold ? [...batch, this.dropped] : batch))) this.hasDropped = true;
      for (const { payload, done } of batch) {
        this.chars -= payload.length;
        done();
      }
      // Nothing else shows that Postgres is back.
      if (this.hasDropped && this.waiting.length === 0) await delay(TELL_MS, undefined, { ref: false });
    }
    this.sending = false;
  }

  /** @returns whether they were sent */
  private async notify(notifications: Notification[]): Promise<boolean> {
    try {
      await this.pool.query('SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS n(c, p)', [
        notifications.map(({ channel }) => channel),
        notifications.map(({ payload }) => payload),
      ]);
      return true;
    } catch (error) {
      this.log.warn('signals not published', error);
      await untilStatementEnded(error);
      return false;
    }
  }
}
