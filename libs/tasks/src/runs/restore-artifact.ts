import { type ClaimedRun, retryTransient, type TaskStore } from '@baton/database';
import type { EventWriter } from './event-writer.js';

/**
 * Invariant 10 for artifacts that are too large for memory. Before a new attempt continues such an artifact, this
 * copies the content of earlier turns and executions to the end of the log, page by page. The copy replaces the output of a dead
 * attempt. If no dead attempt has touched the artifact, there is nothing to replace.
 * @returns true: the artifact continues; false: the next chunk replaces it
 */
export async function restoreArtifact(
  tasks: Pick<TaskStore, 'artifactPage' | 'isArtifactTouched'>,
  { run, writer, signal }: { run: ClaimedRun; writer: Pick<EventWriter, 'write'>; signal: AbortSignal },
  artifactId: string,
): Promise<boolean> {
  const { tenantId, taskId, baseSequence, snapshot } = run;
  const now = { tenantId, taskId, head: snapshot.sequence };
  const touched = await retryTransient(() => tasks.isArtifactTouched(now, artifactId, baseSequence), {
    signal,
  });
  if (!touched) return true;
  const atStart = { ...now, head: baseSequence };
  let begun = false;
  for (let after: number | undefined = 0; after !== undefined;) {
    const from: number = after;
    const page = await retryTransient(() => tasks.artifactPage(atStart, from, { artifactId }), { signal });
    for (const update of page.updates) {
      const value = { ...update, taskId, contextId: snapshot.task.contextId, append: begun && update.append };
      await writer.write({ $case: 'artifactUpdate', value }, false);
      begun = true;
    }
    after = page.next;
  }
  return begun;
}
