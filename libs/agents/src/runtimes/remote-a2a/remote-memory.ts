import { z } from 'zod';
import type { Turn } from '../../runtime.js';

const entry = z.object({
  remote: z.object({
    /** Where its card is: ids of one agent mean nothing to another. */
    card: z.string(),
    taskId: z.string().optional(),
    contextId: z.string().optional(),
    /** The status that the message of this run was an answer to; another one is news. */
    answered: z.string().optional(),
    /** The message of this run is about to be sent. */
    sending: z.boolean().optional(),
  }),
});

/** What is known of the remote task. */
export type RemoteIds = z.output<typeof entry>['remote'];

/** Which task and context of the remote agent belong to a task of ours; kept in the task's journal. */
export class RemoteMemory {
  constructor(
    private readonly turn: Turn,
    private readonly card: string,
  ) {}

  /** What earlier turns and attempts have written for this task; `ofRun` if it was an attempt of this turn. */
  async recall(): Promise<(RemoteIds & { ofRun: boolean; sameCard: boolean }) | undefined> {
    const last = (await this.entries()).at(-1);
    return (
      last && {
        ...last.remote,
        ofRun: last.runId === this.turn.runId,
        sameCard: last.remote.card === this.card,
      }
    );
  }

  /** The remote context of the conversation, if an earlier task of it is known there. */
  async contextOfEarlierTasks(): Promise<string | undefined> {
    const earlier = await this.turn.earlierTasks();
    for (const { id } of earlier.toReversed()) {
      const contextId = (await this.idsOf(id))?.contextId;
      if (contextId !== undefined) return contextId;
    }
    return undefined;
  }

  /** The remote ids of the tasks that the message refers to, as far as they are this agent's. */
  async referenceTaskIds(): Promise<string[]> {
    const ids = await Promise.all(this.turn.referenceTasks.map(({ id }) => this.idsOf(id)));
    return ids.map((found) => found?.taskId).filter((id) => id !== undefined);
  }

  /** Durable when it resolves. */
  async note(ids: Omit<RemoteIds, 'card'>): Promise<void> {
    await this.turn.journal.append({ remote: { card: this.card, ...ids } });
  }

  private async idsOf(taskId: string): Promise<RemoteIds | undefined> {
    const last = (await this.entries(taskId)).at(-1)?.remote;
    return last?.card === this.card ? last : undefined;
  }

  private async entries(taskId?: string): Promise<{ runId: string; remote: RemoteIds }[]> {
    const all = await this.turn.journal.read(taskId);
    return all.flatMap(({ runId, value }) => {
      const read = entry.safeParse(value);
      return read.success ? [{ runId, remote: read.data.remote }] : [];
    });
  }
}
