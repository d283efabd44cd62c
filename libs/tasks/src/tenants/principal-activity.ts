import { type OwnTasks, TaskState } from '@baton/a2a';
import {
  type Actor,
  retryTransient,
  type Schedule,
  ScheduleStore,
  type StoredTask,
  TaskStore,
} from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { TurnEnds } from '../turns/turn-ends.js';

/** States of tasks that have not ended. */
const OPEN = [
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
  TaskState.TASK_STATE_INPUT_REQUIRED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
] as const;
/** Tasks of a principal that are listed. */
const MAX_TASKS = 100;
/** Tasks that are canceled at the same time: each takes a connection. */
const CANCELS_AT_ONCE = 8;
/** Maximum number of tries to pause a schedule while others change or fire it. */
const MAX_TRIES = 10;

/** What a principal has that runs without its calls. */
export interface OpenWork {
  /** Tasks that have not ended, at most 100. */
  tasks: { id: string; agentId: string; state: TaskState }[];
  /** Whether there are more tasks. */
  hasMore: boolean;
  /** Schedules that are not paused. */
  schedules: Pick<Schedule, 'id' | 'name' | 'agent'>[];
}

/** Counts of what was stopped. */
export interface StoppedWork {
  canceledTasks: number;
  pausedSchedules: number;
}

/** The running tasks and schedules of one principal, shown when its token is revoked. */
@Injectable()
export class PrincipalActivity {
  constructor(
    private readonly tasks: TaskStore,
    private readonly schedules: ScheduleStore,
    @Inject(TurnEnds) private readonly turnEnds: Pick<TurnEnds, 'cancel'>,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'stopTicks'>,
    private readonly logger: Logger,
  ) {}

  /** @param owner key of the principal */
  async open(tenantId: string, owner: string): Promise<OpenWork> {
    const found: OpenWork['tasks'] = [];
    for (const state of OPEN) {
      const page = await this.page(tenantId, owner, state, MAX_TASKS + 1 - found.length);
      found.push(...page.map(({ task, agentId }) => ({ id: task.id, agentId, state })));
      if (found.length > MAX_TASKS) break;
    }
    return {
      tasks: found.slice(0, MAX_TASKS),
      hasMore: found.length > MAX_TASKS,
      schedules: (await this.activeSchedules(tenantId, owner)).map(({ id, name, agent }) => ({
        id,
        name,
        agent,
      })),
    };
  }

  /**
   * Pauses the schedules, so that they make no further task, and then cancels the tasks with their children.
   * @param by who stops it, for the audit log
   */
  async stop(tenantId: string, owner: string, by: Actor): Promise<StoppedWork> {
    let pausedSchedules = 0;
    for (const { id } of await this.activeSchedules(tenantId, owner)) {
      if (await this.pause(tenantId, id, by)) pausedSchedules += 1;
    }
    let canceledTasks = 0;
    for (const state of OPEN) canceledTasks += await this.cancelAll(tenantId, owner, state, by);
    return { canceledTasks, pausedSchedules };
  }

  private async cancelAll(tenantId: string, owner: string, state: TaskState, by: Actor): Promise<number> {
    const own = ownedBy(owner);
    let canceled = 0;
    for (let hasProgress = true; hasProgress;) {
      hasProgress = false;
      const page = await this.page(tenantId, owner, state, MAX_TASKS);
      for (let at = 0; at < page.length; at += CANCELS_AT_ONCE) {
        const slice = page.slice(at, at + CANCELS_AT_ONCE);
        const results = await Promise.all(
          slice.map(({ task: { id } }) =>
            retryTransient(() => this.turnEnds.cancel(tenantId, null, id, { own, by })),
          ),
        );
        const done = results.filter(({ ok }) => ok).length;
        canceled += done;
        hasProgress ||= done > 0;
      }
    }
    return canceled;
  }

  private async page(
    tenantId: string,
    owner: string,
    state: TaskState,
    pageSize: number,
  ): Promise<StoredTask[]> {
    const shown = { historyLength: 0, includeArtifacts: false, uncounted: true };
    return (await this.tasks.list({ tenantId, own: ownedBy(owner), state, pageSize, ...shown })).tasks;
  }

  private async activeSchedules(tenantId: string, owner: string): Promise<Omit<Schedule, 'message'>[]> {
    const all = await this.schedules.list(tenantId);
    return all.filter((schedule) => schedule.owner === owner && !schedule.paused);
  }

  /** @returns whether it is paused now; not if it was removed meanwhile */
  private async pause(tenantId: string, id: string, by: Actor): Promise<boolean> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const found = await this.schedules.find(tenantId, id);
      if (!found) return false;
      if (!(await this.schedules.change(found, { ...found, paused: true }, null, by))) continue;
      await this.messaging.stopTicks(id).catch((err: unknown) => {
        this.logger.warn('queue is away; the ticks of a paused schedule stay on it', { err, scheduleId: id });
      });
      return true;
    }
    return false;
  }
}

const ownedBy = (owner: string): OwnTasks => ({ owner, unowned: false });
