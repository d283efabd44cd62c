import type { Database } from '../connection/database.js';
import { estimateOf } from '../connection/json-size.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { artifactKey } from './artifact-key.js';
import { firstOf } from './log-rows.js';
import type { LogSnapshot } from './log-snapshot.js';

// The rows of a log that the artifacts of a task are made of. They are read page by page: a statement reads the sizes of some rows,
// and the payload of only those that fit.

/** One row of a page: a message of a history, or one event of a log or several. */
export interface ContentRow {
  /** Sequence of its last event. Null = the page is empty. */
  sequence: number | null;
  /** Null = it does not fit any more. */
  json: string | null;
  /** Bytes of the page up to here, or about as many. */
  size: number | null;
}

/** SQL: how large the payload of an event `e` is; of one that an earlier release has written, about. */
export const sizeOfEvent = (e: string): string => `coalesce(${e}.bytes, ${estimateOf(`${e}.payload`)})`;

/**
 * SQL: whether an event `e` counts for the artifacts as of the event `head`. Statuses do not, and what was replaced
 * since does not. An event of an earlier release must be read to find out.
 */
const isContent = (e: string, head: string): string => `(${e}.artifact IS NULL OR ${e}.artifact <> 0
  AND NOT EXISTS (SELECT FROM artifact_starts a
    WHERE a.tenant_id = ${e}.tenant_id AND a.task_id = ${e}.task_id AND a.artifact = ${e}.artifact
      AND a.sequence > ${e}.sequence AND a.sequence <= ${head}))`;

/**
 * SQL of the rows of a log that count for the artifacts as of an event, in order: sequence, payload and bytes.
 * @param log SQL of the task, of the event after which the rows begin, of that event, and of their maximum number
 * @param condition of the rows `e`
 */
export const contentRows = (
  log: { tenant_id: string; task_id: string; after: string; head: string; rows: string },
  condition = '',
): string => `SELECT e.sequence, e.payload, e.bytes FROM task_events e
      WHERE e.tenant_id = ${log.tenant_id} AND e.task_id = ${log.task_id} AND e.sequence > ${log.after} ${condition}
        AND ${isContent('e', log.head)}
      ORDER BY e.sequence LIMIT ${log.rows}`;

/** A page of a log. */
interface ArtifactRead extends LogSnapshot {
  after: number;
  rows: number;
  bytes: number;
  /** Only events of this artifact. Events of an earlier release may be of any. */
  artifactId?: string | undefined;
}

const PAGE = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  after: ['int', ({ after }) => after],
  head: ['int', ({ head }) => head],
  rows: ['int', ({ rows }) => rows],
  bytes: ['bigint', ({ bytes }) => bytes],
} satisfies Inputs<ArtifactRead>;

const ARTIFACT = {
  key: ['bigint', ({ artifactId }) => artifactKey(artifactId)],
} satisfies Inputs<{ artifactId: string }>;

const contentPage = (page: Record<keyof typeof PAGE, string>, ofArtifact = ''): string => `
SELECT p.sequence, CASE WHEN p.size <= ${page.bytes} THEN p.payload::text END AS json, p.size::float8 AS size
FROM tasks t LEFT JOIN LATERAL (
  SELECT c.sequence, c.payload, sum(${sizeOfEvent('c')}) OVER (ORDER BY c.sequence) AS size FROM (
    ${contentRows(page, `AND ${firstOf('e')} <= ${page.head} ${ofArtifact}`)}
  ) c
) p ON true
WHERE t.tenant_id = ${keyOfTenant(page.tenant_id)} AND t.id = ${page.task_id} ORDER BY p.sequence`;

const READ_CONTENT = statement('task-read-content', { page: one(PAGE) }, ({ page }) => contentPage(page));

const READ_ARTIFACT = statement(
  'task-read-artifact',
  { page: one(PAGE), artifact: one(ARTIFACT) },
  ({ page, artifact }) => contentPage(page, `AND (e.artifact IS NULL OR e.artifact = ${artifact.key})`),
);

/**
 * A page of the rows that a task's artifacts are made of, or one artifact.
 * @returns undefined: the task is gone
 */
export async function readContentPage(
  database: Database,
  page: ArtifactRead,
): Promise<ContentRow[] | undefined> {
  const { tenantId, artifactId } = page;
  const found =
    artifactId === undefined
      ? await database.tenantQuery<ContentRow>(tenantId, READ_CONTENT, READ_CONTENT.values({ page }))
      : await database.tenantQuery<ContentRow>(
          tenantId,
          READ_ARTIFACT,
          READ_ARTIFACT.values({ page, artifact: { artifactId } }),
        );
  return found.length === 0 ? undefined : found.filter(({ sequence }) => sequence !== null);
}

/** A part of a log, and one of its artifacts. */
interface ArtifactPart extends LogSnapshot {
  after: number;
}

const PART = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  after: ['int', ({ after }) => after],
  head: ['int', ({ head }) => head],
} satisfies Inputs<ArtifactPart>;

const FIRST_SEEN = statement(
  'task-artifacts-first-seen',
  { part: one(PART) },
  ({ part }) => `
SELECT artifact::text AS key, min(sequence) AS sequence FROM task_events
WHERE tenant_id = ${part.tenant_id} AND task_id = ${part.task_id} AND sequence > ${part.after} AND sequence <= ${part.head}
  AND artifact > 0 GROUP BY artifact`,
);

/** Where each artifact first appears in a part of a log: its key (`artifactKey`) and the sequence. */
export async function readFirstSeen(database: Database, part: ArtifactPart): Promise<Map<string, number>> {
  const values = FIRST_SEEN.values({ part });
  type SeenRow = { key: string; sequence: number };
  const rows = await database.tenantQuery<SeenRow>(part.tenantId, FIRST_SEEN, values);
  return new Map(rows.map(({ key, sequence }) => [key, sequence]));
}

const IS_TOUCHED = statement(
  'task-artifact-is-touched',
  { part: one(PART), artifact: one(ARTIFACT) },
  ({ part, artifact }) => `
SELECT EXISTS (
  SELECT FROM task_events e
  WHERE e.tenant_id = ${part.tenant_id} AND e.task_id = ${part.task_id} AND e.sequence > ${part.after} AND ${firstOf('e')} <= ${part.head}
    AND (e.artifact IS NULL OR e.artifact = ${artifact.key})
) AS touched`,
);

/** Whether the log has events of an artifact after one event and up to another. */
export async function isArtifactTouched(
  database: Database,
  snapshot: LogSnapshot,
  artifactId: string,
  after: number,
): Promise<boolean> {
  const part = { ...snapshot, after };
  const values = IS_TOUCHED.values({ part, artifact: { artifactId } });
  const [row] = await database.tenantQuery<{ touched: boolean }>(snapshot.tenantId, IS_TOUCHED, values);
  return row?.touched ?? false;
}
