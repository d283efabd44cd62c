import {
  type Artifact,
  ArtifactFold,
  type CallContext,
  ProtocolError,
  type TaskArtifactUpdateEvent,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { TaskFinder } from './task-finder.js';

/** About how large a page is, in bytes of JSON. A single larger event is a page of its own. */
const PAGE_BYTES = 4 * 1024 * 1024;

/** How far the pages of a task's artifacts were read: they are as of `head`, and this one begins after `after`. */
export interface ArtifactPosition {
  head: number;
  after: number;
}

/** What a page says of one artifact. */
export interface ArtifactPiece {
  /** It goes on with what earlier pages have shown of the artifact; otherwise it is its beginning, and replaces that. */
  append: boolean;
  artifact: Artifact;
}

/** One page of a task's artifacts. */
export interface PageOfArtifacts {
  /** Sequence of the newest event that counts. */
  head: number;
  pieces: ArtifactPiece[];
  /** Undefined on the last page. */
  next: ArtifactPosition | undefined;
}

/** All that a task says in artifacts, however much that is, page by page. All pages show the same moment. */
@Injectable()
export class ArtifactPages {
  constructor(
    private readonly tasks: TaskStore,
    private readonly finder: TaskFinder,
    private readonly environment: Environment,
  ) {}

  /**
   * One page.
   * @param position where the page before has ended; undefined = the first page of the task as it is now
   * @throws ProtocolError `task-not-found`; `invalid-params` if the position lies beyond the task's log
   */
  async page(call: CallContext, id: string, position?: ArtifactPosition): Promise<PageOfArtifacts> {
    const { task, sequence } = await this.finder.find(call, id, { historyLength: 0, artifacts: false });
    const { head, after } = position ?? { head: sequence, after: 0 };
    if (head > sequence) {
      throw ProtocolError.invalidParams('cursor', 'is not of this task: use next_cursor of the page before');
    }
    const snapshot = { tenantId: call.tenantId, taskId: task.id, head };
    const bytes = Math.min(PAGE_BYTES, this.environment.taskReadBytes);
    await call.memory?.take(Math.max(bytes, this.environment.maxEventBytes));
    const { updates, next } = await this.tasks.artifactPage(snapshot, after, { bytes });
    return {
      head,
      pieces: piecesOf(updates, after > 0),
      next: next === undefined ? undefined : { head, after: next },
    };
  }
}

/** @param mayGoOn earlier pages may have shown what the updates add to */
function piecesOf(updates: readonly TaskArtifactUpdateEvent[], mayGoOn: boolean): ArtifactPiece[] {
  const fold = new ArtifactFold();
  const goesOn = new Map<string, boolean>();
  for (const value of updates) {
    fold.apply({ $case: 'artifactUpdate', value });
    const id = value.artifact?.artifactId ?? '';
    goesOn.set(id, value.append && (goesOn.get(id) ?? mayGoOn));
  }
  return fold.artifacts().map((artifact) => ({ append: goesOn.get(artifact.artifactId) ?? false, artifact }));
}
