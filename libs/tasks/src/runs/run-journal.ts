import { type JournalEntry, splitJournal, type TaskOrigin, type TurnJournal } from '@baton/agents';
import {
  type ClaimedRun,
  type CompensationStore,
  JournalStore,
  type RemoteCallStore,
  retryTransient,
} from '@baton/database';
import { AppendRefused } from '../core/append-refused.js';

/** The journal of a claimed run's task. Entries are written one after another, each until Postgres has answered. */
export class RunJournal implements TurnJournal {
  /** Position of the last entry. Undefined: it is not known yet. */
  private head: number | undefined;
  private last: Promise<unknown> = Promise.resolve();

  /** @param isEmpty this is the first attempt of a task that continues no other, so nothing was written before */
  constructor(
    private readonly store: Pick<JournalStore, 'read' | 'append' | 'restart'>,
    private readonly run: Pick<ClaimedRun, 'tenantId' | 'taskId' | 'runId' | 'attempt'>,
    private readonly signal: AbortSignal,
    private readonly remoteCalls: Pick<RemoteCallStore, 'note'>,
    private readonly compensations: Pick<CompensationStore, 'note'>,
    isEmpty = false,
  ) {
    if (isEmpty) this.head = 0;
  }

  /** The origin of the task, from the first entry. Undefined: it continues no other task. */
  async origin(): Promise<TaskOrigin | undefined> {
    return splitJournal(await this.own()).origin;
  }

  /** The entries of the runtime. */
  async read(taskId = this.run.taskId): Promise<JournalEntry[]> {
    const stored = taskId === this.run.taskId ? await this.own() : await this.stored(taskId);
    return splitJournal(stored).entries;
  }

  /** No other attempt writes from now on, so the first read finds the end of the journal. */
  private async own(): Promise<JournalEntry[]> {
    const entries = await this.stored(this.run.taskId);
    this.head ??= entries.at(-1)?.position ?? 0;
    return entries;
  }

  private stored(taskId: string): Promise<JournalEntry[]> {
    return retryTransient(() => this.store.read(this.run.tenantId, taskId), { signal: this.signal });
  }

  append(value: unknown, record?: string): Promise<void> {
    return this.inOrder((position) => this.store.append(this.run, position, value, record));
  }

  /** The entry about the origin of the task stays. */
  restart(value: unknown): Promise<void> {
    return this.inOrder(async (position) => {
      const kept = (await this.origin()) ? 1 : 0;
      return this.store.restart(this.run, position, value, kept);
    });
  }

  noteRemoteCall(): Promise<void> {
    return this.noteIn(this.remoteCalls);
  }

  noteCompensable(): Promise<void> {
    return this.noteIn(this.compensations);
  }

  private async noteIn(store: Pick<RemoteCallStore, 'note'>): Promise<void> {
    const isOurs = await retryTransient(() => store.note(this.run), { signal: this.signal });
    if (!isOurs) throw new AppendRefused('another attempt owns the run');
  }

  private inOrder(write: (position: number) => Promise<boolean>): Promise<void> {
    const written = this.last.then(() => this.write(write));
    this.last = written.catch(() => undefined);
    return written;
  }

  /** A lost answer is asked for again. The entry has a fixed position, so it is written once. */
  private async write(write: (position: number) => Promise<boolean>): Promise<void> {
    if (this.head === undefined) await this.own();
    const position = (this.head ?? 0) + 1;
    const isOurs = await retryTransient(() => write(position), { signal: this.signal });
    if (!isOurs) throw new AppendRefused('another attempt owns the run');
    this.head = position;
  }
}
