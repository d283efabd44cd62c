import {
  Artifact,
  ArtifactFold,
  Message,
  type ReadMemory,
  type TaskArtifactUpdateEvent,
  type Truncation,
} from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { type ContentRow, readContentPage, readFirstSeen } from '../log/artifact-events.js';
import { artifactKey } from '../log/artifact-key.js';
import { payloadsOf, payloadsWithin } from '../log/log-rows.js';
import type { LogSnapshot } from '../log/log-snapshot.js';
import type { StoredTask } from './task-records.js';
import {
  KEEP_ARTIFACTS,
  PAGE_BYTES,
  type ReadProgress,
  READ_HISTORY,
  type ReadPage,
  readRows,
} from './task-content.js';
import { ReadBudget } from './read-budget.js';
import { artifactsJson, INLINE_BYTES, isPartial, type TaskRow } from './task-row.js';
import { storedTask } from './stored-task.js';

/** Largest `integer` of Postgres. */
const MAX_INT = 2_147_483_647;

/** Rows of a page of the log. */
const CONTENT_ROWS = 1024;
/** Rows of a page of the history, whose messages may be large. */
const HISTORY_ROWS = 64;
/** Maximum share of a budget for the history if artifacts are read as well. */
export const HISTORY_SHARE = 1 / 4;

/** The parts of a task to read. */
export interface ReadOptions {
  /** Messages of the history; unset = all. */
  historyLength?: number | undefined;
  budget: ReadBudget;
  /** Read only the part that came with the row. */
  rowOnly?: boolean;
}

/** A part of the artifact events of a log. */
export interface ArtifactPageOptions {
  /** Unset = of all artifacts. */
  artifactId?: string | undefined;
  /** About how large a page is, in bytes of JSON; default 1 MiB. */
  bytes?: number;
  /** The memory that the caller has taken the bytes from. Large work takes the turns of the call. */
  memory?: ReadMemory | undefined;
}

/** A page of the artifact events of a log. */
export interface ArtifactPage {
  /** They need not have the ids of their task. */
  updates: TaskArtifactUpdateEvent[];
  /** The position of the next page; undefined = this was the last one. */
  next: number | undefined;
}

/**
 * Reads the content of tasks, page by page, within a budget. The task's metadata mark what is left out. Rows of a log
 * never change, so a task as of an event is the same whenever its pages are read.
 */
export class TaskReader {
  constructor(private readonly database: Database) {}

  /** The task of a row; undefined if it was deleted meanwhile. */
  async read(tenantId: string, row: TaskRow, wanted: ReadOptions): Promise<StoredTask | undefined> {
    const snapshot = { tenantId, taskId: row.id, head: row.last_sequence };
    const history = await this.history(snapshot, row, wanted);
    if (!row.tail)
      return storedTask(row, row, { history: history.messages, artifacts: [] }, historyTruncation(history));
    const { artifacts, progress } = await this.artifacts(snapshot, row, wanted);
    if (!progress) return undefined;
    const inOrder =
      row.replaced && !wanted.rowOnly ? await this.inOrder(snapshot, row, artifacts) : artifacts;
    return storedTask(
      row,
      row,
      { history: history.messages, artifacts: inOrder },
      {
        ...historyTruncation(history),
        ...(!progress.isWhole && { artifactsUpToEvent: progress.position }),
      },
    );
  }

  /** The artifacts as they were right after an event of the log. */
  async artifactsAt(
    snapshot: LogSnapshot,
    row: TaskRow,
    budget: ReadBudget,
  ): Promise<{ artifacts: Artifact[]; isWhole: boolean }> {
    const inline = row.artifacts_sequence <= snapshot.head ? row : { ...row, artifacts: null };
    const { artifacts, progress } = await this.artifacts(snapshot, { ...inline, tail: null }, { budget });
    return { artifacts, isWhole: progress?.isWhole ?? true };
  }

  /**
   * The artifact events after an event, in order: a page of `bytes`, or one larger event. Replaced output is left out
   * if this is known without reading it. So the very first update may have `append`.
   */
  async artifactPage(
    snapshot: LogSnapshot,
    after: number,
    wanted: ArtifactPageOptions = {},
  ): Promise<ArtifactPage> {
    const { artifactId, bytes = PAGE_BYTES, memory } = wanted;
    const ask = this.contentPages(snapshot, artifactId);
    const updates: TaskArtifactUpdateEvent[] = [];
    const budget = new ReadBudget(bytes, undefined, memory && { of: memory, expected: bytes });
    const rows = { from: after, pageRows: CONTENT_ROWS, limit: Infinity, budget, atLeastOne: true };
    const progress = await readRows(ask, rows, (json, sequence) => {
      for (const payload of payloadsWithin(json, sequence, after, snapshot.head)) {
        if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) continue;
        if ((artifactId ?? payload.value.artifact.artifactId) === payload.value.artifact.artifactId) {
          updates.push(payload.value);
        }
      }
    });
    return { updates, next: progress && !progress.isWhole ? progress.position : undefined };
  }

  /**
   * Store the folded artifacts of a task that ended without its writer, so that no read folds them again. Those of a
   * large task stay in its log. Never rejects: the task has ended in any case.
   */
  async keepArtifacts(tenantId: string, { task, sequence, truncation }: StoredTask): Promise<void> {
    if (truncation?.artifactsUpToEvent !== undefined) return;
    const json = artifactsJson(task.artifacts);
    if (Buffer.byteLength(json) > INLINE_BYTES) return;
    const values = [tenantId, task.id, sequence, json];
    await this.database.tenantQuery(tenantId, KEEP_ARTIFACTS, values).catch(() => undefined);
  }

  private async history(
    { tenantId, taskId }: LogSnapshot,
    { history, tail }: TaskRow,
    { historyLength = Infinity, budget, rowOnly }: ReadOptions,
  ): Promise<{ messages: Message[]; isWhole: boolean }> {
    const allowed = tail ? budget.part(HISTORY_SHARE) : budget;
    if (!allowed.take(history.bytes ?? 0)) return { messages: [], isWhole: false };
    const messages = history.messages.map((message) => Message.fromJSON(message));
    if (messages.length >= historyLength || !isPartial(history, messages.length))
      return { messages, isWhole: true };
    if (rowOnly || !(await budget.granted())) return { messages, isWhole: false };
    const older: Message[] = [];
    const ask: ReadPage = (before, rows, bytes) =>
      this.database.tenantQuery<ContentRow>(tenantId, READ_HISTORY, [tenantId, taskId, before, rows, bytes]);
    const limit = historyLength - messages.length;
    const progress = await readRows(
      ask,
      { from: history.from ?? MAX_INT, pageRows: HISTORY_ROWS, limit, budget: allowed },
      (json) => {
        older.push(Message.fromJSON(JSON.parse(json)));
      },
    );
    return { messages: [...older.reverse(), ...messages], isWhole: progress?.isWhole ?? true };
  }

  /** The artifacts of the row, and the artifact events after them. No progress: the task was deleted. */
  private async artifacts(
    snapshot: LogSnapshot,
    { artifacts: inline, artifacts_bytes: inlineBytes, artifacts_sequence: folded, tail }: TaskRow,
    { budget, rowOnly }: ReadOptions,
  ): Promise<{ artifacts: Artifact[]; progress: ReadProgress | undefined }> {
    const fold = new ArtifactFold(inline?.map((artifact) => Artifact.fromJSON(artifact)));
    // Artifacts that are too large for the row are read from the beginning of the log.
    let progress: ReadProgress | undefined = {
      isWhole: inline !== null && folded >= snapshot.head,
      position: inline ? folded : 0,
    };
    if (inline && !budget.take(inlineBytes))
      return { artifacts: [], progress: { isWhole: false, position: 0 } };
    if (inline && tail) {
      if (!budget.take(tail.bytes ?? 0))
        return { artifacts: fold.artifacts(), progress: { isWhole: false, position: folded } };
      for (const payload of tail.events.flatMap(payloadsOf)) fold.apply(payload);
      progress = { isWhole: !isPartial(tail, tail.events.length), position: tail.to ?? folded };
    }
    if (rowOnly || progress.isWhole || !(await budget.granted()))
      return { artifacts: fold.artifacts(), progress };
    const ask = this.contentPages(snapshot);
    const { position } = progress;
    progress = await readRows(
      ask,
      { from: position, pageRows: CONTENT_ROWS, limit: Infinity, budget },
      (json, sequence) => {
        for (const payload of payloadsWithin(json, sequence, position, snapshot.head)) fold.apply(payload);
      },
    );
    return { artifacts: fold.artifacts(), progress };
  }

  /** Artifacts in the order of their first events, which may be in a part of the log that is not read. */
  private async inOrder(
    snapshot: LogSnapshot,
    { artifacts: inline, artifacts_sequence: folded }: TaskRow,
    artifacts: Artifact[],
  ): Promise<Artifact[]> {
    const firstSeen = await readFirstSeen(this.database, { ...snapshot, after: inline ? folded : 0 });
    const older = new Set(inline?.map((artifact) => Artifact.fromJSON(artifact).artifactId));
    const position = ({ artifactId }: Artifact): number =>
      older.has(artifactId) ? 0 : (firstSeen.get(artifactKey(artifactId)) ?? 0);
    const positioned = artifacts.map((artifact) => ({ artifact, position: position(artifact) }));
    return positioned.sort((one, two) => one.position - two.position).map(({ artifact }) => artifact);
  }

  private contentPages(snapshot: LogSnapshot, artifactId?: string): ReadPage {
    return (after, rows, bytes) =>
      readContentPage(this.database, { ...snapshot, after, rows, bytes, artifactId });
  }
}

const historyTruncation = ({ messages, isWhole }: { messages: Message[]; isWhole: boolean }): Truncation =>
  isWhole ? {} : { historyMessages: messages.length };
