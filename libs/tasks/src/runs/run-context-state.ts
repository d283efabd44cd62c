import type { StateWrite, TurnState, WrittenState } from '@baton/agents';
import { type ClaimedRun, ContextStateStore, type ContextValue, retryTransient } from '@baton/database';
import { AppendRefused } from '../core/append-refused.js';

/** The state of the conversation of a claimed run's task. */
export class RunContextState implements TurnState {
  constructor(
    private readonly store: Pick<ContextStateStore, 'read' | 'write'>,
    private readonly run: Pick<ClaimedRun, 'tenantId' | 'taskId' | 'runId' | 'attempt'>,
    private readonly signal: AbortSignal,
  ) {}

  read(key: string): Promise<ContextValue | undefined> {
    return retryTransient(() => this.store.read(this.run, key), { signal: this.signal });
  }

  /** A lost answer is asked for again. The writer is the same, so it is written once. */
  async write(write: StateWrite): Promise<WrittenState> {
    const result = await retryTransient(() => this.store.write(this.run, write), { signal: this.signal });
    if (result.outcome === 'refused') throw new AppendRefused('another attempt owns the run');
    return result;
  }
}
