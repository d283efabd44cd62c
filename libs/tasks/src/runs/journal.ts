import type { JournalEntry, TurnJournal } from '@baton/agents';
import type { ClaimedRun, JournalStore } from '@baton/database';
import { AppendRefused } from '../core/errors.js';
import { retryTransient } from '../core/retry-transient.js';

/** The journal of a claimed run's task. Entries are written one after another, each until Postgres has answered. */
export class RunJournal implements TurnJournal {
  private head: number | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: Pick<JournalStore, 'read' | 'append'>,
    private readonly run: Pick<ClaimedRun, 'tenantId' | 'taskId' | 'runId' | 'attempt'>,
    private readonly signal: AbortSignal,
  ) {}

  read(taskId = this.run.taskId): Promise<JournalEntry[]> {
    return retryTransient(() => this.store.read(this.run.tenantId, taskId), this.signal);
  }

  append(value: unknown): Promise<void> {
    const written = this.last.then(() => this.write(value));
    this.last = written.catch(() => undefined);
    return written;
  }

  /** An answer that was lost is asked for again: the place of the entry is known, so it is written once. */
  private async write(value: unknown): Promise<void> {
    this.head ??= (await this.read()).at(-1)?.position ?? 0;
    const position = this.head + 1;
    const isOurs = await retryTransient(() => this.store.append(this.run, position, value), this.signal);
    if (!isOurs) throw new AppendRefused("the run is no longer this attempt's");
    this.head = position;
  }
}
