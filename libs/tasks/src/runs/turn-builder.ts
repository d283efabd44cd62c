import { type Agent, type Task, wellFormed } from '@baton/a2a';
import {
  AccessTokens,
  type GuardedTurn,
  type TurnLog,
  SecretReader,
  SecretGuard,
  withOrigin,
} from '@baton/agents';
import {
  type ClaimedRun,
  ContextStateStore,
  JournalStore,
  CompensationStore,
  RemoteCallStore,
  TaskStore,
  retryTransient,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import type { Span } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { hasOrigin } from '../forks/fork-metadata.js';
import { EarlierTasks } from '../turns/earlier-tasks.js';
import { CallRecords, type RunCallRecords } from './call-records.js';
import { TaskConsoles } from './task-consoles.js';
import { RunContextState } from './run-context-state.js';
import { RunJournal } from './run-journal.js';

/** Each is read before the turn begins. */
const MAX_REFERENCE_TASKS = 16;

/** Builds the input of a runtime for a turn. */
@Injectable()
export class TurnBuilder {
  constructor(
    private readonly tasks: TaskStore,
    private readonly earlier: EarlierTasks,
    private readonly journals: JournalStore,
    private readonly secrets: SecretReader,
    private readonly outbound: Outbound,
    private readonly limits: LimitsService,
    private readonly consoles: TaskConsoles,
    private readonly callRecords: CallRecords,
    private readonly states: ContextStateStore,
    private readonly remoteCalls: RemoteCallStore,
    private readonly compensations: CompensationStore,
    private readonly tokens: AccessTokens,
  ) {}

  /** The records of the calls that an attempt makes of its model. */
  recordsOf(run: ClaimedRun): RunCallRecords {
    return this.callRecords.forRun(run);
  }

  /** The turn of a claimed run. Its later reads are retried while Postgres is away, until `signal` aborts. */
  async turnOf(
    run: ClaimedRun,
    agent: Agent,
    log: TurnLog,
    records: RunCallRecords,
    signal: AbortSignal,
    span?: Span,
  ): Promise<GuardedTurn> {
    const { tenantId, runId, attempt, details, extensions, runsAlone } = run;
    // Earlier releases have stored text that is not well-formed Unicode.
    const { message, task: stored } = wellFormed({ message: run.message, task: run.snapshot.task });
    const goesOn = hasOrigin(stored);
    const isEmpty = attempt === 1 && run.startSequence === 1 && !goesOn;
    const { journals, remoteCalls, compensations } = this;
    const journal = new RunJournal(journals, run, signal, remoteCalls, compensations, isEmpty);
    const origin = goesOn ? await journal.origin() : undefined;
    const task = origin ? withOrigin(stored, origin) : stored;
    const secrets = new SecretGuard(this.secrets, tenantId, this.tokens, {
      id: run.taskId,
      owner: run.owner,
      agent: agent.slug,
    });
    const egress = () => retryTransient(() => this.limits.egress(tenantId), { signal });
    const outbound = () => this.outbound.forTenant(tenantId, egress);
    const console = () => secrets.console(this.consoles.forRun(run));
    return {
      tenantId,
      runId,
      attempt,
      agent,
      owner: run.owner,
      task,
      message,
      details,
      referenceTasks: await retryTransient(() => this.referenceTasks(run), { signal }),
      earlierTasks: async (count) => {
        const list = () => this.earlier.list(tenantId, agent, stored, origin, count);
        return (await retryTransient(list, { signal })).map(({ task: earlier }) => wellFormed(earlier));
      },
      journal: secrets.journal(journal),
      state: new RunContextState(this.states, run, signal),
      origin,
      log,
      records,
      secrets,
      // Created at their first use, because many turns call no agent and have no console.
      get outbound() {
        return outbound();
      },
      get console() {
        return console();
      },
      extensions,
      traceparent: run.traceparent ?? undefined,
      span,
      runsAlone,
    };
  }

  /** Only tasks that the owner of this task may read: a caller can name any task. */
  private async referenceTasks({ tenantId, message, owner }: ClaimedRun): Promise<Task[]> {
    const ids = message.referenceTaskIds.slice(0, MAX_REFERENCE_TASKS);
    const found = await Promise.all(ids.map((id) => this.tasks.get(tenantId, id)));
    return found.flatMap((stored) =>
      stored && isReadableBy(owner, stored) ? [wellFormed(stored.task)] : [],
    );
  }
}

/** Whether a task may be shown to an agent that answers a task of that owner. */
const isReadableBy = (owner: string | null, { owner: theirs }: { owner: string | null }): boolean =>
  theirs === owner || (theirs === null && !owner?.startsWith('guest:'));
