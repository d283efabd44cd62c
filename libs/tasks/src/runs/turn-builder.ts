import type { Agent, Task } from '@baton/a2a';
import type { JournalEntry, Turn, TurnJournal } from '@baton/agents';
import { type ClaimedRun, JournalStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { AppendRefused } from '../core/errors.js';
import { retryTransient } from '../core/retry.js';

const MAX_REFERENCE_TASKS = 16;
/** How many earlier tasks of the context a runtime gets: unless it asks for another number, and at most. */
const EARLIER_TASKS = 16;
const MAX_EARLIER_TASKS = 100;

/** Collects what a runtime is given for a turn. */
@Injectable()
export class TurnBuilder {
  constructor(
    private readonly tasks: TaskStore,
    private readonly journals: JournalStore,
  ) {}

  /** The turn of a claimed run. What it reads later is retried while Postgres is away, until `signal` aborts. */
  async turnOf(run: ClaimedRun, agent: Agent, signal: AbortSignal): Promise<Turn> {
    const { tenantId, runId, attempt, message, extensions, cut, runsAlone } = run;
    const { task } = cut;
    return {
      tenantId,
      runId,
      attempt,
      agent,
      task,
      message,
      referenceTasks: await retryTransient(() => this.referenceTasks(run), { signal }),
      earlierTasks: (count = EARLIER_TASKS) => this.earlierTasks(run, agent, count, signal),
      journal: new RunJournal(this.journals, run, signal),
      extensions,
      traceparent: run.traceparent ?? undefined,
      runsAlone,
    };
  }

  private async referenceTasks({ tenantId, message }: ClaimedRun): Promise<Task[]> {
    const ids = message.referenceTaskIds.slice(0, MAX_REFERENCE_TASKS);
    const found = await Promise.all(ids.map((id) => this.tasks.get(tenantId, id)));
    return found.map((stored) => stored?.task).filter((task): task is Task => !!task);
  }

  private async earlierTasks(
    { tenantId, cut }: ClaimedRun,
    agent: Agent,
    count: number,
    signal: AbortSignal,
  ): Promise<Task[]> {
    const { contextId, id } = cut.task;
    const limit = Math.min(count, MAX_EARLIER_TASKS);
    const list = () => this.tasks.listContext(tenantId, agent.id, contextId, id, limit);
    const earlier = await retryTransient(list, { signal });
    return earlier.map((stored) => stored.task);
  }
}

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
    return retryTransient(() => this.store.read(this.run.tenantId, taskId), { signal: this.signal });
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
    const isOurs = await retryTransient(() => this.store.append(this.run, position, value), {
      signal: this.signal,
    });
    if (!isOurs) throw new AppendRefused("the run is no longer this attempt's");
    this.head = position;
  }
}
