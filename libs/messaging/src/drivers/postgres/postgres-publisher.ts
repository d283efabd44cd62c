import type { PgPool } from 'bullmq';
import { within } from '../../deadline.js';
import type { QuietLog } from '../../quiet-log.js';

/** What may wait for a server that is slow to answer; more is dropped. */
const WAITING_CHARS = 4 * 1024 * 1024;
const BATCH = 500;
/** A statement that takes longer is on a connection that leads nowhere: the next one goes out on another. */
const SEND_MS = 5_000;

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
