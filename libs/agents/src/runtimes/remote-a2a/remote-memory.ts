import { type Message, Role } from '@baton/a2a';
import { z } from 'zod';
import { historyBefore, type Turn } from '../../agent-runtime.js';

const entry = z.object({
  remote: z.object({
    /** URL of the agent's card. Ids of one agent are invalid at another. */
    card: z.string(),
    taskId: z.string().optional(),
    contextId: z.string().optional(),
    /** Key of the status that this run's message answers. Any other status is new. */
    answered: z.string().optional(),
    /** This run is about to send its message. */
    sending: z.boolean().optional(),
    /** This run has not sent its message: its caller must sign in first. */
    unsent: z.boolean().optional(),
  }),
});

/** The stored ids of a remote task. */
export type RemoteIds = z.output<typeof entry>['remote'];

/** Maps a task to its remote task and context. The mapping is in the task's journal. */
export class RemoteMemory {
  constructor(
    private readonly turn: Turn,
    private readonly card: string,
  ) {}

  /** The last entry of the task. `ofRun`: an attempt of this turn wrote it, and the message may have arrived. */
  async recall(): Promise<(RemoteIds & { ofRun: boolean; sameCard: boolean }) | undefined> {
    const last = (await this.entries()).at(-1);
    return (
      last && {
        ...last.remote,
        ofRun: last.runId === this.turn.runId && last.remote.unsent !== true,
        sameCard: last.remote.card === this.card,
      }
    );
  }

  /** The remote context of the conversation, if an earlier task has one. */
  async contextOfEarlierTasks(): Promise<string | undefined> {
    const earlier = await this.turn.earlierTasks();
    for (const { id } of earlier.toReversed()) {
      const contextId = (await this.idsOf(id))?.contextId;
      if (contextId !== undefined) return contextId;
    }
    return undefined;
  }

  /** The remote ids of the message's referenced tasks, without tasks of other agents. */
  async referenceTaskIds(): Promise<string[]> {
    const ids = await Promise.all(this.turn.referenceTasks.map(({ id }) => this.idsOf(id)));
    return ids.map((found) => found?.taskId).filter((id) => id !== undefined);
  }

  /** Durable when it resolves. */
  async note(ids: Omit<RemoteIds, 'card'>): Promise<void> {
    await this.turn.journal.append({ remote: { card: this.card, ...ids } });
  }

  /** The same for a turn whose message was not sent. The ids stay. */
  async noteUnsent(): Promise<void> {
    const { taskId, contextId, answered, sameCard } = (await this.recall()) ?? {};
    await this.note({ ...(sameCard && { taskId, contextId, answered }), unsent: true });
  }

  /** The messages of earlier turns that were not sent, because the caller has sent another one instead of signing in. Oldest first. */
  async unsentMessages(): Promise<Message[]> {
    const entries = await this.entries();
    const lastSent = entries.findLastIndex(({ remote }) => remote.unsent !== true);
    const runs = new Set(entries.slice(lastSent + 1).map(({ runId }) => runId));
    runs.delete(this.turn.runId);
    if (runs.size === 0) return [];
    return historyBefore(this.turn)
      .filter(({ role }) => role === Role.ROLE_USER)
      .slice(-runs.size);
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
