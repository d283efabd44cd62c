import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { IS_PARKED } from '../dispatch/parked-run.js';

/** What an operator watches of the whole database. */
export interface InstallationState {
  /** Size of the database on disk. */
  bytes: number;
  /** Time since the last `baton backup` began, in seconds; undefined: there was none. */
  backupAgeSeconds: number | undefined;
  /** Schedules that Baton has paused, because it cannot compute their next time. */
  pausedSchedules: number;
  /** For how long the most overdue run that sleeps, or task that asks, should have continued, in seconds; 0: none is overdue. */
  sleepOverdueSeconds: number;
  /** Runs of all tenants that wait for other code of their agent. */
  parkedRuns: number;
  /** Agents whose `next` has lost its share by itself, until the tenant or the operator decides about it. */
  endedNext: number;
}

const STATE: Statement = {
  text: `SELECT pg_database_size(current_database())::float8 AS bytes,
    (SELECT extract(epoch FROM clock_timestamp() - value::timestamptz)::float8 FROM installation WHERE name = 'last_backup')
      AS "backupAgeSeconds",
    (SELECT count(*)::int FROM schedules WHERE paused_reason IS NOT NULL) AS "pausedSchedules",
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - least(
      (SELECT min(not_before) FROM runs WHERE state = 'suspended' AND not_before IS NOT NULL),
      (SELECT min(wakes_at) FROM tasks WHERE wakes_at IS NOT NULL)
    ))), 0)::float8 AS "sleepOverdueSeconds",
    (SELECT count(*)::int FROM runs WHERE ${IS_PARKED}) AS "parkedRuns",
    (SELECT count(*)::int FROM agents WHERE next_ended IS NOT NULL AND deleted_at IS NULL) AS "endedNext"`,
};

const NOTE_BACKUP: Statement = {
  text: `INSERT INTO installation (name, value) VALUES ('last_backup', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = now()`,
};

/** Facts about the whole installation. */
@Injectable()
export class InstallationStore {
  constructor(private readonly database: Database) {}

  async state(): Promise<InstallationState> {
    const [row] = await this.database.systemQuery<
      Omit<InstallationState, 'backupAgeSeconds'> & { backupAgeSeconds: number | null }
    >(STATE, []);
    if (!row) throw new Error('Postgres has answered with no row');
    return { ...row, backupAgeSeconds: row.backupAgeSeconds ?? undefined };
  }

  /** @param at ISO time of the snapshot of a backup that is complete */
  async noteBackup(at: string): Promise<void> {
    await this.database.systemQuery(NOTE_BACKUP, [at]);
  }
}
