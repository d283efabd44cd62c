import { isUuid, Message } from '@baton/a2a';
import { DEFAULT_LIMITS, Environment } from '@baton/config';
import { Inject, Injectable } from '@nestjs/common';
import { type Actor, PLATFORM_ACTOR } from '../audit/audit-records.js';
import { NameTakenError } from '../connection/name-taken-error.js';
import { Database, type Statement, type Values } from '../connection/database.js';
import type { PageAfter } from '../tenants/tenant-records.js';
import { keepInRoom } from '../tenants/tenant-room.js';
import type { DueSchedule, Firing, Schedule, ScheduleSpec, FiringResult } from './schedule-records.js';
import * as sql from './schedule-sql.js';

/** Identifies a schedule and the version that was read. */
export type ScheduleKey = Pick<Schedule, 'tenantId' | 'id' | 'version'>;
type NamedKey = ScheduleKey & Pick<Schedule, 'name'>;

/**
 * Schedules of tenants. A worker leases a due schedule and finishes it. A worker with an old version changes nothing.
 */
@Injectable()
export class ScheduleStore {
  constructor(
    private readonly database: Database,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'defaultLimits'> = { defaultLimits: DEFAULT_LIMITS },
  ) {}

  /** @throws NameTakenError, LimitReachedError */
  async create(
    {
      tenantId,
      id,
      nextAt,
      owner = null,
      ...spec
    }: ScheduleSpec & Pick<Schedule, 'tenantId' | 'id' | 'nextAt'> & Partial<Pick<Schedule, 'owner'>>,
    by: Actor,
  ): Promise<Schedule> {
    const schedule = { tenantId, id, version: FIRST_VERSION };
    const values = sql.CREATE.values({ schedule, spec: { spec, nextAt }, by: owner });
    const made = await this.database.inTenant(tenantId, async (transaction) => {
      await transaction.query(sql.LOCK_CREATES, [tenantId]);
      const [row] = await transaction.query<sql.ScheduleRow>(sql.CREATE, values);
      if (!row) return undefined;
      const { name, agent } = spec;
      await transaction.record({
        action: 'schedule.create',
        target: targetOf(name),
        by,
        detail: { id, agent },
      });
      const { defaultLimits } = this.environment;
      const kept = { added: 'schedules', bytes: row.bytes } as const;
      await keepInRoom(transaction, tenantId, defaultLimits, kept);
      return scheduleOf(row);
    });
    if (made) return made;
    throw nameTaken(spec);
  }

  /**
   * By name, in the order of the database, without their messages.
   * @param page unset = all
   * @param agents only those of these agents, by slug or id as the schedule names them; unset = all
   */
  async list(
    tenantId: string,
    page?: PageAfter,
    agents?: readonly string[],
  ): Promise<Omit<Schedule, 'message'>[]> {
    const values = [tenantId, page?.after ?? '', page?.limit ?? null, agents ?? null];
    const rows = await this.database.tenantQuery<sql.ScheduleRow>(tenantId, sql.LIST, values);
    return rows.map(scheduleOf);
  }

  /** @param idOrName a name never has the form of an id */
  async find(tenantId: string, idOrName: string): Promise<Schedule | undefined> {
    if (!isUuid(idOrName)) return this.findNamed(tenantId, idOrName);
    const [row] = await this.database.tenantQuery<sql.ScheduleRow>(tenantId, sql.FIND, [
      tenantId,
      idOrName,
      null,
    ]);
    return row && scheduleOf(row);
  }

  /**
   * @returns undefined if it has changed since it was read, or is gone
   * @throws NameTakenError, LimitReachedError
   */
  async change(
    { tenantId, id, version }: ScheduleKey,
    spec: ScheduleSpec,
    nextAt: Date | null,
    by: Actor,
  ): Promise<Schedule | undefined> {
    const values = sql.CHANGE.values({ schedule: { tenantId, id, version }, spec: { spec, nextAt } });
    try {
      return await this.database.inTenant(tenantId, async (transaction) => {
        const [row] = await transaction.query<sql.ScheduleRow>(sql.CHANGE, values);
        if (!row) return undefined;
        const { name, agent, paused } = spec;
        const detail = { id, agent, paused };
        await transaction.record({ action: 'schedule.update', target: targetOf(name), by, detail });
        await keepInRoom(transaction, tenantId, this.environment.defaultLimits, { bytes: row.bytes });
        return scheduleOf(row);
      });
    } catch (error) {
      if ((error as { code?: unknown }).code !== '23505') throw error;
      throw nameTaken(spec);
    }
  }

  /** @returns whether there was one */
  async remove(tenantId: string, id: string, by: Actor): Promise<boolean> {
    return this.database.inTenant(tenantId, async (transaction) => {
      const [removed] = await transaction.query<{ name: string; bytes: number }>(sql.REMOVE, [tenantId, id]);
      if (!removed) return false;
      await transaction.record({
        action: 'schedule.delete',
        target: targetOf(removed.name),
        by,
        detail: { id },
      });
      await keepInRoom(transaction, tenantId, this.environment.defaultLimits, { bytes: -removed.bytes });
      return true;
    });
  }

  /**
   * Lease due schedules of all tenants, the longest overdue first: those whose time has come, and those whose time waits for
   * a task that has ended.
   * @param forMs duration of the lease
   * @param overdueMs only schedules that are overdue for at least this long
   */
  async takeDue(forMs: number, overdueMs: number, limit: number): Promise<DueSchedule[]> {
    const values = [forMs, overdueMs, limit];
    const rows = await this.database.systemQuery<sql.ScheduleRow>(sql.TAKE_DUE, values);
    return rows.map(dueOf);
  }

  /** Takes the schedule if it is due, now or at the time in the job of the queue. */
  async takeOne(
    { tenantId, id }: Pick<Schedule, 'tenantId' | 'id'>,
    dueAt: Date,
    forMs: number,
  ): Promise<DueSchedule | undefined> {
    const values = [forMs, tenantId, id, dueAt];
    const [row] = await this.database.tenantQuery<sql.ScheduleRow>(tenantId, sql.TAKE_ONE, values);
    return row && dueOf(row);
  }

  /** Its next time is being fired: some process makes its task. @returns undefined = see `change` */
  async begin({ tenantId, id, version }: ScheduleKey): Promise<number | undefined> {
    const values = [tenantId, id, version];
    const [row] = await this.database.tenantQuery<{ version: number }>(tenantId, sql.BEGIN, values);
    return row?.version;
  }

  /** Its next time waits for the previous task. It is taken when that has ended, and after this many ms in any case. */
  async wait({ tenantId, id, version }: ScheduleKey, ms: number): Promise<void> {
    await this.database.tenantQuery(tenantId, sql.WAIT, [tenantId, id, version, ms]);
  }

  /**
   * Store the outcome of a time, and the next time.
   * @returns false = it did nothing: the schedule has changed since it was read
   */
  async finish(key: NamedKey, result: FiringResult): Promise<boolean> {
    const { pauseReason } = result;
    const values = sql.FINISH.values({ schedule: key, result });
    if (pauseReason !== null) return this.stop(key, sql.FINISH, values, pauseReason);
    return (await this.database.tenantQuery(key.tenantId, sql.FINISH, values)).length > 0;
  }

  /** Refuses the time that is due, and pauses the schedule until the tenant resumes it. Does nothing if the schedule has changed since it was read. */
  async pause(key: NamedKey, reason: string): Promise<void> {
    const { tenantId, id, version } = key;
    await this.stop(key, sql.PAUSE, [tenantId, id, version, reason], reason);
  }

  /** A statement that pauses a schedule, with its record in the audit log. @returns whether it changed the schedule */
  private async stop(
    { tenantId, id, name }: NamedKey,
    statement: Statement,
    values: Values,
    reason: string,
  ): Promise<boolean> {
    return this.database.inTenant(tenantId, async (transaction) => {
      const rows = await transaction.query(statement, values);
      if (rows.length === 0) return false;
      const detail = { id, paused: true, reason };
      await transaction.record({
        action: 'schedule.update',
        target: targetOf(name),
        by: PLATFORM_ACTOR,
        detail,
      });
      return true;
    });
  }

  /** Seconds since the longest overdue schedule of all tenants was due; 0 = none is overdue. */
  async overdueSeconds(): Promise<number> {
    const [row] = await this.database.systemQuery<{ seconds: number }>(sql.OVERDUE, []);
    return row?.seconds ?? 0;
  }

  /** Store the outcome of a run on demand. */
  async note(
    { tenantId, id, name }: Pick<Schedule, 'tenantId' | 'id' | 'name'>,
    { dueAt, outcome, reason }: Omit<Firing, 'at'>,
    taskId: string | null,
    by: Actor,
  ): Promise<void> {
    await this.database.inTenant(tenantId, async (transaction) => {
      const values = sql.NOTE.values({ run: { tenantId, id, dueAt, outcome, reason, taskId } });
      await transaction.query(sql.NOTE, values);
      await transaction.record({
        action: 'schedule.run',
        target: targetOf(name),
        by,
        detail: { id, taskId },
      });
    });
  }

  private async findNamed(tenantId: string, name: string): Promise<Schedule | undefined> {
    const [row] = await this.database.tenantQuery<sql.ScheduleRow>(tenantId, sql.FIND, [
      tenantId,
      null,
      name,
    ]);
    return row && scheduleOf(row);
  }
}

/** A change names the version that it has read. */
const FIRST_VERSION = 0;

const targetOf = (name: string) => ({ kind: 'schedule', name }) as const;

const nameTaken = ({ name }: ScheduleSpec): NameTakenError =>
  new NameTakenError(`The schedule "${name}" already exists`);

const dueOf = (row: sql.ScheduleRow): DueSchedule => ({ schedule: scheduleOf(row), now: row.now });

const scheduleOf = (row: sql.ScheduleRow): Schedule => ({
  tenantId: row.tenant_id,
  id: row.id,
  owner: row.owner,
  name: row.name,
  agent: row.agent,
  message: Message.fromJSON(row.message ?? {}),
  cron: row.cron,
  at: row.at,
  timeZone: row.time_zone,
  startsAt: row.starts_at,
  endsAt: row.ends_at,
  overlap: row.overlap,
  missed: row.missed,
  context: row.context,
  maxCount: row.max_count,
  paused: row.paused,
  fired: row.fired,
  passed: { skipped: row.skipped_count, missed: row.missed_count, refused: row.refused_count },
  pausedReason: row.paused_reason,
  nextAt: row.next_at,
  isWaiting: row.is_waiting,
  pendingAt: row.pending_at,
  version: row.version,
  last: firingOf(row),
  lastTaskId: row.last_task_id,
  lastTaskState: row.last_task_state,
  recentTasks: row.recent_tasks.map(({ id, state, created_at: at }) => ({
    taskId: id,
    state,
    createdAt: new Date(at),
  })),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

function firingOf({ last_due_at, last_at, last_outcome, last_reason }: sql.ScheduleRow): Firing | null {
  if (!last_due_at || !last_at || !last_outcome) return null;
  return { dueAt: last_due_at, at: last_at, outcome: last_outcome, reason: last_reason };
}
