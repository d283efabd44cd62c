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

/** Target size of a page, in bytes of JSON. A single larger event is a page of its own. */
const PAGE_BYTES = 4 * 1024 * 1024;

/**
 * The position in the pages of a task's artifacts: all pages are as of `head`, and the next one begins after `after`.
 */
export interface ArtifactPosition {
  head: number;
  after: number;
}

/** One artifact of a page. */
export interface ArtifactPiece {
  /** True: continues the artifact of earlier pages. False: the artifact begins here and replaces them. */
  append: boolean;
  artifact: Artifact;
}

/** One page of a task's artifacts. */
export interface PageOfArtifacts {
  /** Sequence of the newest event that the pages include. */
  head: number;
  pieces: ArtifactPiece[];
  /** Undefined on the last page. */
  next: ArtifactPosition | undefined;
}

/** All artifacts of a task, page by page, whatever their size. All pages show the same moment. */
@Injectable()
export class ArtifactPages {
  constructor(
    private readonly tasks: TaskStore,
    private readonly finder: TaskFinder,
    private readonly environment: Environment,
  ) {}

  /**
   * One page.
   * @param position the end of the previous page; undefined = the first page of the task as it is now
   * @param artifactId only this artifact
   * @throws ProtocolError `task-not-found`; `invalid-params` if the position lies beyond the task's log
   */
  async page(
    call: CallContext,
    id: string,
    position?: ArtifactPosition,
    artifactId?: string,
  ): Promise<PageOfArtifacts> {
    const { task, sequence } = await this.finder.find(call, id, { historyLength: 0, artifacts: false });
    const { head, after } = position ?? { head: sequence, after: 0 };
    if (head > sequence) {
      throw ProtocolError.invalidParams(
        'cursor',
        'belongs to another task: use next_cursor of the previous page',
      );
    }
    const snapshot = { tenantId: call.tenantId, taskId: task.id, head };
    const bytes = Math.min(PAGE_BYTES, this.environment.taskReadBytes);
    await call.memory?.take(Math.max(bytes, this.environment.maxEventBytes));
    const { updates, next } = await this.tasks.artifactPage(snapshot, after, {
      artifactId,
      bytes,
      memory: call.memory,
    });
    return {
      head,
      pieces: piecesOf(updates, after > 0),
      next: next === undefined ? undefined : { head, after: next },
    };
  }
}

/** @param mayGoOn the updates may continue artifacts of earlier pages */
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
