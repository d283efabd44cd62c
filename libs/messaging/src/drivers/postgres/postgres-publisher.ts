import { PostgresPool, untilStatementEnded } from '@baton/postgres';
import { type QuietLog } from '../../quiet-log.js';
/** Maximum that waits for a slow server. More is dropped. */
const WAITING_CHARS = 4 * 1024 * 1024;
const BATCH = 500;

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
    private readonly pool: PostgresPool,
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
        await this.pool.query('SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS n(c, p)', [
          batch.map(({ channel }) => channel),
          batch.map(({ payload }) => payload),
        ]);
      } catch (error) {
        this.log.warn('signals not published', error);
        await untilStatementEnded(error);
      }
      for (const { payload, done } of batch) {
        this.chars -= payload.length;
        done();
      }
    }
    this.sending = false;
  }
}
