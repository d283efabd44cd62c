import { isAllowed, isAllowedName, ProtocolError } from '@baton/a2a';
import {
  type Actor,
  NameTakenError,
  type PageAfter,
  type Schedule,
  type ScheduleSpec,
  ScheduleStore,
} from '@baton/database';
import { explainLimit } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { clock, Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import type { Viewer } from '../catalog/catalog.js';
import { ScheduleFiring } from './schedule-firing.js';
import { assertTimes, nextTime } from './schedule-times.js';
import { ticksOf } from './ticks.js';

/** Maximum number of tries to change a schedule while others change or fire it. */
const MAX_TRIES = 10;
/** Members that say when the schedule fires. A change of one of them computes the next time again. */
const WHEN = ['cron', 'at', 'timeZone', 'startsAt', 'endsAt', 'maxCount', 'paused'] as const;

/** A tenant's schedules, for the tenant itself. */
@Injectable()
export class Schedules {
  constructor(
    private readonly store: ScheduleStore,
    private readonly directory: AgentDirectory,
    private readonly firing: ScheduleFiring,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
  ) {}

  /** A page by name, without their messages. */
  async page({ tenantId, agents }: Viewer, page: PageAfter): Promise<Omit<Schedule, 'message'>[]> {
    return this.store.list(tenantId, page, agents && [...agents.slugs, ...agents.ids]);
  }

  /** Throws `not-found`, also for a schedule of an agent that does not exist for the viewer. */
  async find({ tenantId, agents }: Viewer, idOrName: string): Promise<Schedule> {
    const schedule = await this.store.find(tenantId, idOrName);
    if (!schedule || !isAllowedName(agents, schedule.agent))
      throw new ProtocolError('not-found', `Schedule not found: ${idOrName.slice(0, 100)}`);
    return schedule;
  }

  /**
   * @param by who creates it, and owns its tasks; unset = they belong to the schedule
   * @throws ProtocolError `invalid-params` that names the field, `conflict` for a name that is taken, `limit-exceeded`
   */
  async create(viewer: Viewer, spec: ScheduleSpec, by: Actor): Promise<Schedule> {
    const { tenantId } = viewer;
    const now = clock.date();
    assertTimes(spec, now);
    await this.assertAgent(viewer, spec.agent);
    const nextAt = nextTimeOf(spec, 0, now);
    const made = await this.store
      .create({ tenantId, owner: by.key, id: uuid(), nextAt, ...spec }, by)
      .catch(explainRefusal);
    await this.updateTicks(made);
    return made;
  }

  /**
   * Change the given members. A firing that is under way is not affected.
   * @throws ProtocolError as `create` and `find` do
   */
  async change(viewer: Viewer, idOrName: string, patch: Partial<ScheduleSpec>, by: Actor): Promise<Schedule> {
    if (patch.agent !== undefined) await this.assertAgent(viewer, patch.agent);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = await this.find(viewer, idOrName);
      const spec = merge(found, patch);
      const now = clock.date();
      const isNew = WHEN.some((member) => patch[member] !== undefined);
      if (isNew && !spec.paused) assertTimes(spec, now);
      const nextAt = isNew ? nextTimeOf(spec, found.fired, now) : found.nextAt;
      const changed = await this.store.change(found, spec, nextAt, by).catch(explainRefusal);
      if (!changed) continue;
      if (isNew) await this.updateTicks(changed);
      return changed;
    }
    throw new ProtocolError(
      'internal',
      'Other requests changed the schedule at the same time: send the change again',
    );
  }

  /** Delete the schedule. Its tasks stay. Throws `not-found`. */
  async remove(viewer: Viewer, idOrName: string, by: Actor): Promise<void> {
    const { id } = await this.find(viewer, idOrName);
    await this.store.remove(viewer.tenantId, id, by);
    await this.updateTicks({ id, nextAt: null });
  }

  /**
   * Create a task now, in addition to the schedule's times, also while it is paused. It does not wait for the previous
   * task.
   * @returns the id of the task
   * @throws ProtocolError if the agent or a limit of the tenant does not allow it
   */
  async run(viewer: Viewer, idOrName: string, by: Actor): Promise<{ schedule: Schedule; taskId: string }> {
    const schedule = await this.find(viewer, idOrName);
    const [now, taskId] = [clock.date(), uuid()];
    await this.firing.fire({ ...schedule, pendingAt: null }, now, taskId);
    await this.store.note(schedule, { dueAt: now, outcome: 'started', reason: null }, taskId, by);
    return { schedule, taskId };
  }

  private async assertAgent({ tenantId, agents }: Viewer, name: string): Promise<void> {
    const agent = await this.directory.find(tenantId, name);
    if (agent && isAllowed(agents, agent)) return;
    throw ProtocolError.invalidParams(
      'agent',
      `there is no agent "${name.slice(0, 100)}": name an existing agent`,
    );
  }

  /** Set or stop the ticks on the queue. If the queue is away, a worker sets them when the schedule is due. */
  private async updateTicks(schedule: Schedule | Pick<Schedule, 'id' | 'nextAt'>): Promise<void> {
    try {
      if (schedule.nextAt && 'cron' in schedule) await this.messaging.setTicks(ticksOf(schedule));
      else await this.messaging.stopTicks(schedule.id);
    } catch (error) {
      this.logger.warn('queue is away; the workers will find the schedule', { err: error });
    }
  }
}

/** `cron` and `at` replace each other. */
function merge(found: ScheduleSpec, patch: Partial<ScheduleSpec>): ScheduleSpec {
  const merged = { ...found, ...patch };
  if (patch.cron && patch.at === undefined) merged.at = null;
  if (patch.at && patch.cron === undefined)
    Object.assign(merged, { cron: null, startsAt: null, endsAt: null });
  return merged;
}

function nextTimeOf(spec: ScheduleSpec, fired: number, now: Date): Date | null {
  if (spec.paused || (spec.maxCount !== null && fired >= spec.maxCount)) return null;
  return nextTime(spec, now) ?? null;
}

const explainRefusal = (error: unknown): never => {
  if (error instanceof NameTakenError) throw new ProtocolError('conflict', `name: ${error.message}`);
  return explainLimit(error);
};
