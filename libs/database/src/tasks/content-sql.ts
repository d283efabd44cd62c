import type { Statement } from '../connection/database.js';
import { estimateOf, isContent, sizeOfEvent } from './task-row.js';

// What a task says is read page by page: each statement reads the sizes of some rows, and of those alone that fit
// into what its reader may still take, the content.

/** One row of a page. */
export interface ContentRow {
  /** Null = the page is empty. */
  sequence: number | null;
  /** Null = it does not fit any more. */
  json: string | null;
  /** Bytes of the page up to here, or about as many. */
  size: number | null;
}

/**
 * No row at all: the task is gone. $1 tenant $2 task $3 after $4 as of which event $5 rows $6 bytes
 * @param of a condition for the events `e`
 */
const contentPage = (name: string, of: string): Statement => ({
  name,
  text: `
SELECT p.sequence, CASE WHEN p.size <= $6 THEN p.payload::text END AS json, p.size::float8 AS size
FROM tasks t LEFT JOIN LATERAL (
  SELECT c.sequence, c.payload, sum(${sizeOfEvent('c')}) OVER (ORDER BY c.sequence) AS size FROM (
    SELECT e.sequence, e.payload, e.bytes FROM task_events e
    WHERE e.tenant_id = $1 AND e.task_id = $2 AND e.sequence > $3 AND e.sequence <= $4 ${of}
      AND ${isContent('e', '$4')}
    ORDER BY e.sequence LIMIT $5
  ) c
) p ON true
WHERE t.tenant_id = $1 AND t.id = $2 ORDER BY p.sequence`,
});

/** The events that a task's artifacts are made of. */
export const READ_CONTENT = contentPage('task-read-content', '');
/** … those of one artifact: $7 its key. Events of an earlier release may be of any. */
export const READ_ARTIFACT = contentPage('task-read-artifact', 'AND (e.artifact IS NULL OR e.artifact = $7)');

/** Where each artifact first appears in a part of a log: $1 tenant $2 task $3 after $4 up to */
export const FIRST_SEEN: Statement = {
  name: 'task-artifacts-first-seen',
  text: `
SELECT artifact::text AS key, min(sequence) AS sequence FROM task_events
WHERE tenant_id = $1 AND task_id = $2 AND sequence > $3 AND sequence <= $4 AND artifact > 0 GROUP BY artifact`,
};

/** A page of a history, newest first: $1 tenant $2 task $3 before $4 rows $5 bytes */
export const READ_HISTORY: Statement = {
  name: 'task-read-history',
  text: `
SELECT p.sequence, CASE WHEN p.size <= $5 THEN p.message::text END AS json, p.size::float8 AS size FROM (
  SELECT m.sequence, m.message, sum(${estimateOf('m.message')}) OVER (ORDER BY m.sequence DESC) AS size FROM (
    SELECT sequence, message FROM task_messages
    WHERE tenant_id = $1 AND task_id = $2 AND sequence < $3 ORDER BY sequence DESC LIMIT $4
  ) m
) p ORDER BY p.sequence DESC`,
};

/** Whether an artifact was said something of after one event and up to another: $1 tenant $2 task $3 after $4 up to $5 its key */
export const IS_TOUCHED: Statement = {
  name: 'task-artifact-is-touched',
  text: `
SELECT EXISTS (
  SELECT FROM task_events e
  WHERE e.tenant_id = $1 AND e.task_id = $2 AND e.sequence > $3 AND e.sequence <= $4
    AND (e.artifact IS NULL OR e.artifact = $5)
) AS touched`,
};

/** $1 tenant $2 task $3 sequence the artifacts are folded to $4 artifacts */
export const KEEP_ARTIFACTS: Statement = {
  name: 'task-keep-artifacts',
  text: `
UPDATE tasks SET artifacts = $4, artifacts_sequence = $3
WHERE tenant_id = $1 AND id = $2 AND last_sequence = $3 AND artifacts_sequence < $3`,
};
