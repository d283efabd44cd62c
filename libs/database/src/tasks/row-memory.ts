import type { ReadMemory } from '@baton/a2a';
import { MAX_CONTENT_BYTES, type TaskRow } from './task-row.js';

/** What a list reads of each of its tasks. */
interface ListedContent {
  pageSize: number;
  artifacts: boolean;
  history: boolean;
  /** Maximum that the call reads of tasks, in bytes of JSON. */
  readBytes: number;
}

/**
 * The memory for contents that come with the rows of a list. How large they are is known when they are here. So the memory for the
 * largest is taken before, and what was not needed is given back.
 */
export class RowMemory implements ReadMemory {
  private constructor(
    private readonly memory: ReadMemory,
    private held: number,
  ) {}

  /**
   * Waits for the memory of a page.
   * @returns undefined if the call gets none
   * @throws ProtocolError `unavailable`, see `ReadMemory.take`
   */
  static async take(memory: ReadMemory, listed: ListedContent): Promise<RowMemory | undefined> {
    const { pageSize, artifacts, history, readBytes } = listed;
    const { ofArtifacts, ofHistory } = MAX_CONTENT_BYTES;
    const ofRow = (artifacts ? ofArtifacts : 0) + (history ? ofHistory : 0);
    const bytes = Math.min(pageSize * ofRow, readBytes);
    if (bytes > 0 && !(await memory.take(bytes))) return undefined;
    return new RowMemory(memory, bytes);
  }

  /** The rows are here: keeps what their contents take. */
  keep(rows: readonly TaskRow[]): void {
    const bytes = rows.reduce((sum, row) => sum + contentBytes(row), 0);
    this.giveBack(this.held - Math.min(bytes, this.held));
  }

  /** Takes memory for content that did not come with the rows. Gives back its own first: a caller that holds some never waits. */
  take(bytes: number): Promise<boolean> {
    this.giveBack(this.held);
    return this.memory.take(bytes);
  }

  giveBack(bytes: number): void {
    this.held -= bytes;
    this.memory.giveBack(bytes);
  }

  turn(bytes: number): Promise<void> {
    return this.memory.turn(bytes);
  }
}

const contentBytes = ({ artifacts_bytes: artifacts, history, tail }: TaskRow): number =>
  artifacts + (history.bytes ?? 0) + (tail?.bytes ?? 0);
