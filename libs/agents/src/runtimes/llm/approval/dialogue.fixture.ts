import type { Message } from '@baton/a2a';
import type { AgentOutput, Turn } from '../../../agent-runtime.js';
import { MemoryJournal, textOf, userMessage } from '../../../../../../test/support/agents/turns.js';
import type { LlmBench } from '../llm-runtime.fixture.js';

/** A task whose every turn is on a worker of its own, which has the journal and the history only. */
export class Dialogue {
  private readonly history: Message[] = [];
  private journal = new MemoryJournal();

  constructor(
    private readonly bench: LlmBench,
    private readonly config: Record<string, unknown> = {},
  ) {}

  /** The turn of the next message. */
  turn(parts: Parameters<typeof userMessage>[0], metadata?: Message['metadata']): Turn {
    const messageId = `m-${this.history.length + 1}`;
    this.history.push(userMessage(parts, { messageId, metadata }));
    const journal = new MemoryJournal(`run-${messageId}`);
    journal.entries.push(...this.journal.entries);
    this.journal = journal;
    const turn = this.bench.turn(this.config, { journal, runId: journal.runId }, this.history.at(-1));
    return { ...turn, task: { ...turn.task, history: [...this.history] } };
  }

  async say(parts: Parameters<typeof userMessage>[0]) {
    return endOf(await this.bench.run(this.turn(parts)));
  }
}

/** The status that ended a turn, as far as people and programs read it. */
export function endOf(outputs: readonly AgentOutput[]) {
  const last = outputs.at(-1);
  if (last?.$case !== 'statusUpdate') throw new Error('no status at the end');
  const { state, message } = last.value.status!;
  const parts = message?.parts ?? [];
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as unknown] : []));
  return { state, text: textOf(parts), data };
}
