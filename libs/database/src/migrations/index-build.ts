import { setTimeout as delay } from 'node:timers/promises';
import { escapeIdentifier } from 'pg';
import type { IndexStep } from './migration-file.js';
import {
  sessionText,
  isLockConflict,
  type MigrationSession,
  type OtherSession,
  SESSION_COLUMNS,
} from './migration-session.js';
import { type StepLines } from './step-lines.js';

/** Progress of an index, which takes minutes, is read and printed this often. */
const LOOK_EVERY_MS = 2_000;

const INDEX_STATE = `SELECT i.indisvalid AS "isValid", EXISTS (SELECT FROM pg_stat_progress_create_index p
    WHERE p.index_relid = i.indexrelid AND p.pid <> pg_backend_pid()) AS "isBeingBuilt"
  FROM pg_index i WHERE i.indexrelid = to_regclass($1)`;
const INDEX_PROGRESS = `SELECT phase, CASE WHEN tuples_total > 0 THEN 100 * tuples_done / tuples_total
    WHEN blocks_total > 0 THEN 100 * blocks_done / blocks_total END::int AS percent,
  ${SESSION_COLUMNS}
  FROM pg_stat_progress_create_index p LEFT JOIN pg_stat_activity a ON a.pid = p.current_locker_pid WHERE p.pid = $1`;

interface IndexState {
  isValid: boolean;
  isBeingBuilt: boolean;
}

type IndexProgress = Partial<OtherSession> & { phase?: string; percent?: number | null };

/** A build that a crash has left INVALID is dropped and made again. */
export async function changeIndex(
  session: MigrationSession,
  { kind, index, text }: IndexStep,
  lines: StepLines,
): Promise<string> {
  const name = escapeIdentifier(index);
  const begin = performance.now();
  for (;;) {
    const [state] = (await session.client.query<IndexState>(INDEX_STATE, [name])).rows;
    if (state?.isBeingBuilt) {
      lines.sayProgress('another session is building it; waiting');
      await delay(250);
      continue;
    }
    if (kind === 'build index' && state?.isValid) return 'exists already';
    try {
      if (kind === 'build index' && state) {
        lines.say('an earlier build was not finished; dropping it');
        await watched(session, `DROP INDEX CONCURRENTLY IF EXISTS ${name}`, lines);
      }
      await watched(session, text, lines);
      return 'done';
    } catch (error) {
      const mayRetry = performance.now() - begin < session.options.lockPatienceMs;
      if (!mayRetry || !isLockConflict(error)) throw error;
      lines.say('gave way to another session; trying again');
    }
  }
}

/** Executes a statement that may take hours, and reports its progress. */
async function watched(session: MigrationSession, text: string, lines: StepLines): Promise<void> {
  const end = new AbortController();
  const watching = watchIndex(session, lines, end.signal).catch(() => undefined);
  try {
    await session.client.query(text);
  } finally {
    end.abort();
    await watching;
  }
}

async function watchIndex(session: MigrationSession, lines: StepLines, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(LOOK_EVERY_MS, undefined, { signal });
    const { rows } = await session.observer.query<IndexProgress>(INDEX_PROGRESS, [session.pid]);
    const { phase, percent, ...waitsFor } = rows[0] ?? {};
    if (waitsFor.pid) lines.say(`${phase}: waits for ${sessionText(waitsFor as OtherSession)}`);
    else if (phase) lines.say(`${phase}${typeof percent === 'number' ? ` ${percent}%` : ''}`);
  }
}
