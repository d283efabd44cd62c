import { canSee, ProtocolError, type Reacher } from '@baton/a2a';
import { effectKey, originOf, taskOfEffects } from '@baton/agents';
import { type EffectOutcome, type EffectRecord, JournalStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { TaskListing, type TaskListFilter, type TaskListPosition } from './task-listing.js';

/** Tasks that one call reads. */
const MAX_SEARCHED = 500;
/** Tasks of one statement. */
const PAGE = 100;

/** An effect of a task. */
export interface TaskEffect extends Omit<EffectRecord, 'of'> {
  taskId: string;
  agentId: string;
  /** The effect key that its receiver has got. Undefined: an earlier release made the call. */
  key: string | undefined;
}

export interface EffectPage {
  effects: TaskEffect[];
  /** How many tasks were looked at. */
  searched: number;
  /** Where to continue. Unset: there are no more tasks. */
  next?: TaskListPosition;
}

/** The effects of tasks outside of Baton, from their journals. */
@Injectable()
export class EffectLedger {
  constructor(
    private readonly tasks: TaskStore,
    private readonly journals: JournalStore,
    private readonly listing: TaskListing,
  ) {}

  /** Effects of one task that the caller sees. Throws `not-found`. */
  async ofTask(caller: Reacher & { tenantId: string }, taskId: string): Promise<TaskEffect[]> {
    const stored = await this.tasks.get(caller.tenantId, taskId, { historyLength: 0, artifacts: false });
    if (stored && canSee(caller, stored)) return this.read(caller.tenantId, taskId, stored.agentId);
    throw new ProtocolError('not-found', `Task not found: ${taskId}`);
  }

  /**
   * Effects of the tasks that the caller sees, those with the newest status first. It reads 500 tasks at most. All effects of a
   * task are on one page, so that it may have more than `limit`.
   */
  async list(
    caller: Reacher & { tenantId: string },
    { limit, after }: { limit: number; after?: TaskListPosition | undefined },
    outcome: EffectOutcome | undefined,
    filter: TaskListFilter = {},
  ): Promise<EffectPage> {
    const effects: TaskEffect[] = [];
    let position = after;
    let searched = 0;
    while (searched < MAX_SEARCHED) {
      const page = { limit: PAGE, ...(position && { after: position }) };
      const { tasks, more } = await this.listing.list(caller, page, filter);
      const ids = tasks.map(({ task }) => task.id);
      const known = await this.journals.tasksWithJournal(caller.tenantId, ids);
      for (const [i, { task, agentId }] of tasks.entries()) {
        searched++;
        position = { statusAt: new Date(task.status?.timestamp ?? 0), taskId: task.id };
        if (!known.has(task.id)) continue;
        const all = await this.read(caller.tenantId, task.id, agentId);
        effects.push(...all.filter((effect) => outcome === undefined || effect.outcome === outcome));
        const isLast = i === tasks.length - 1 && !more;
        if (effects.length >= limit && !isLast) return { effects, searched, next: position };
      }
      if (!more) return { effects, searched };
    }
    return { effects, searched, ...(position && { next: position }) };
  }

  private async read(tenantId: string, taskId: string, agentId: string): Promise<TaskEffect[]> {
    const [{ effects, begun }, open, first] = await Promise.all([
      this.journals.effects(tenantId, taskId),
      this.journals.openCalls(tenantId, taskId),
      this.journals.entry(tenantId, taskId, 1),
    ]);
    const isLive = open.length > 0 && (await this.journals.hasLiveRun(tenantId, taskId));
    const waits = open.some(({ waitsForApproval }) => waitsForApproval);
    const called = open.map(({ call, tool, at }): EffectRecord => {
      // Without a note the call may be repeated, so it is not noted before it is sent.
      const outcome = begun.get(call) ?? (waits ? 'intended' : isLive ? 'sent' : 'unknown');
      const times = { begunAt: at, endedAt: null, error: null };
      return { of: { call }, name: tool, kind: 'tool', outcome, attempts: 1, ...times, position: 0 };
    });
    const origin = originOf(first?.value);
    const keyed = taskOfEffects({ task: { id: taskId }, origin });
    // What a fork has taken over was done by the task before it, with its keys.
    const copied = origin && !origin.effectsOf ? origin.copied + 1 : 0;
    return [...effects, ...called]
      .filter(({ position }) => position === 0 || position > copied)
      .map(({ of, ...effect }) => ({ ...effect, taskId, agentId, key: of && keyOf(keyed, of, effect.name) }));
  }
}

const keyOf = (task: string, of: NonNullable<EffectRecord['of']>, name: string): string =>
  'call' in of ? effectKey(task, 'call', of.call) : effectKey(task, 'step', of.execution, of.nth, name);
