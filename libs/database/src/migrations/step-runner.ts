import { setTimeout as delay } from 'node:timers/promises';
import { escapeIdentifier } from 'pg';
import { changeIndex } from './index-build.js';
import type { BackfillStep, Migration, MigrationStep } from './migration-file.js';
import { type MigrationSession, type Query, secondsText } from './migration-session.js';
import { StepLines } from './step-lines.js';

/** Exists while a migration of several steps is under way: which of them are done, and how far a backfill is. */
const CREATE_PROGRESS = `CREATE TABLE IF NOT EXISTS _baton_migration_progress (
  migration TEXT NOT NULL, step INTEGER NOT NULL, is_done BOOLEAN NOT NULL DEFAULT false,
  last_key TEXT[], slices INTEGER NOT NULL DEFAULT 0, row_count BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (migration, step))`;
const DONE = `INSERT INTO _baton_migration_progress (migration, step, is_done) VALUES ($1, $2, true)
  ON CONFLICT (migration, step) DO UPDATE SET is_done = true`;
/** The last slice makes the step done. */
const SLICE_DONE = `INSERT INTO _baton_migration_progress (migration, step, last_key, row_count, is_done, slices)
  VALUES ($1, $2, $3, $4, $5, 1) ON CONFLICT (migration, step) DO UPDATE SET last_key = excluded.last_key,
  slices = _baton_migration_progress.slices + 1, row_count = _baton_migration_progress.row_count + excluded.row_count,
  is_done = excluded.is_done`;
const READ_PROGRESS = `SELECT step, is_done AS "isDone", last_key AS "lastKey", slices, row_count::float8 AS rows
  FROM _baton_migration_progress WHERE migration = $1`;

/**
 * A slice times out before Postgres checks for deadlocks (1 s), so that Postgres never ends a caller's statement
 * instead.
 */
const SLICE_LOCK_TIMEOUT_MS = 500;

/** Name of the migration, number of the step. */
type StepId = [string, number];

interface StepProgress {
  step: number;
  isDone: boolean;
  lastKey: string[] | null;
  slices: number;
  rows: number;
}

/**
 * Executes the steps of a migration while the system is in use. Every step that has been done stays done: after a
 * crash the same migration continues after its last step, a backfill after its last slice.
 */
export class StepRunner {
  constructor(private readonly session: MigrationSession) {}

  /** Rejects if a step fails, or does not get a lock in `lockPatienceMs`. */
  async run({ name, steps }: Migration): Promise<void> {
    await this.session.client.query(CREATE_PROGRESS);
    const { rows: progress } = await this.session.client.query<StepProgress>(READ_PROGRESS, [name]);
    for (const [index, step] of steps.entries()) {
      const before = progress.find((row) => row.step === index);
      const lines = new StepLines(`${index + 1}/${steps.length} ${step.label}`, this.session.options.report);
      if (before?.isDone) {
        lines.say('was done before');
        continue;
      }
      const begin = performance.now();
      const outcome = await this.runStep(step, lines, [name, index], before);
      lines.say(`${outcome} in ${secondsText(performance.now() - begin)}`);
    }
  }

  /** Forgets how far migrations were, once none is under way. */
  async forgetProgress(): Promise<void> {
    await this.session.client.query('DROP TABLE IF EXISTS _baton_migration_progress');
  }

  private async runStep(
    step: MigrationStep,
    lines: StepLines,
    id: StepId,
    before: StepProgress | undefined,
  ): Promise<string> {
    if (step.kind === 'backfill') return this.backfill(step, lines, id, before);
    const { lockTimeoutMs } = this.session.options;
    const done = { text: DONE, values: id };
    if (step.kind === 'transaction') {
      await this.session.transact(lines, lockTimeoutMs, [...step.statements, done]);
      return 'done';
    }
    const text = await changeIndex(this.session, step, lines);
    await this.session.transact(lines, lockTimeoutMs, [done]);
    return text;
  }

  /** Each slice commits together with its position, so that none is repeated and none is left out. */
  private async backfill(
    step: BackfillStep,
    lines: StepLines,
    id: StepId,
    before: StepProgress | undefined,
  ): Promise<string> {
    const { rows: found } = await this.session.observer.query<{ rows: number }>(
      `SELECT reltuples::float8 AS rows FROM pg_class WHERE oid = to_regclass($1)`,
      [escapeIdentifier(step.table)],
    );
    const estimate = Math.ceil((found[0]?.rows ?? 0) / step.rows);
    let { lastKey, slices, rows } = before ?? { lastKey: null, slices: 0, rows: 0 };
    if (before) lines.say(`continues after slice ${slices}`);
    for (;;) {
      const begin = performance.now();
      const end = await this.endOfSlice(step, lastKey);
      const text = step.slice((alias) => condition(alias, step.key, lastKey, end));
      const values = [...(lastKey ?? []), ...(end ?? [])];
      const save = (changed: number): Query => ({
        text: SLICE_DONE,
        values: [...id, end ?? lastKey, changed, !end],
      });
      rows += await this.session.transact(
        lines,
        Math.min(SLICE_LOCK_TIMEOUT_MS, this.session.options.lockTimeoutMs),
        [{ text, values }, save],
      );
      slices += 1;
      if (!end) break;
      lastKey = end;
      lines.sayProgress(`slice ${slices} of about ${Math.max(estimate, slices)}, ${rows} rows`);
      // The migration works at most half of the time.
      await delay(performance.now() - begin);
    }
    return `${slices} slices, ${rows} rows`;
  }

  /** The key of the last row of the slice after `lastKey`; nothing if the slice is the last one. */
  private async endOfSlice(
    { table, key, rows }: BackfillStep,
    lastKey: string[] | null,
  ): Promise<string[] | null> {
    const columns = key.map((column) => escapeIdentifier(column));
    const select = columns.map((column) => `${column}::text`).join();
    const after = lastKey ? `WHERE ${condition(table, key, lastKey, null)}` : '';
    const text = `SELECT ARRAY[${select}] AS key FROM ${escapeIdentifier(table)} ${after}
      ORDER BY ${columns.join()} OFFSET ${rows - 1} LIMIT 1`;
    await this.session.begin();
    const { rows: found } = await this.session.client.query<{ key: string[] }>(text, lastKey ?? []);
    await this.session.client.query('COMMIT');
    return found[0]?.key ?? null;
  }
}

/** The rows behind one key up to another; parameters are first those of `from`, then those of `to`. */
function condition(alias: string, key: string[], from: string[] | null, to: string[] | null): string {
  const row = `(${key.map((column) => `${escapeIdentifier(alias)}.${escapeIdentifier(column)}`).join()})`;
  const values = (first: number): string => `(${key.map((_, index) => `$${first + index}`).join()})`;
  const bounds = [from && `${row} > ${values(1)}`, to && `${row} <= ${values(from ? key.length + 1 : 1)}`];
  return bounds.filter(Boolean).join(' AND ') || 'true';
}
