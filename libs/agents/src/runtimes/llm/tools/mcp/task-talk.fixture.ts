import { type Part, Role } from '@baton/a2a';
import { MemoryJournal, userMessage } from '../../../../../../../test/support/agents/turns.js';
import { type AgentOutput, jsonPart, plainTextPart } from '../../../../agent-runtime.js';
import { Suspension } from '../../../../suspension.js';
import { summaryOf } from '../../llm-runtime.fixture.js';

/** One attempt of a turn. */
interface Attempt {
  runId: string;
  attempt: number;
  history: ReturnType<typeof userMessage>[];
  /** Those that earlier attempts have stored. */
  artifacts: ReturnType<typeof storedAs>[];
}

/**
 * A task over several turns and attempts. Each attempt is a worker of its own: it has the journal, and nothing else of the attempts
 * before.
 */
export abstract class TaskTalk {
  readonly journal = new MemoryJournal();
  /** What the call has said while it was made. */
  readonly progress: unknown[] = [];
  private readonly history = [userMessage('Make the report.', { messageId: 'm-1' })];
  private attempt = 0;
  private artifacts: ReturnType<typeof summaryOf>['artifacts'] = {};

  /** @param progressId id of the artifact with what the call says while it is made */
  constructor(private readonly progressId: string) {}

  /** What the agent does in an attempt. */
  protected abstract outputs(attempt: Attempt, signal: AbortSignal): AsyncIterable<AgentOutput>;

  /** The next attempt of the turn, on another worker. */
  async run(signal = new AbortController().signal): Promise<AgentOutput[]> {
    this.attempt += 1;
    const { history, attempt } = this;
    const runId = `run-${history.at(-1)!.messageId}`;
    Object.assign(this.journal, { runId });
    const artifacts = Object.entries(this.artifacts).map(storedAs);
    const outputs: AgentOutput[] = [];
    try {
      for await (const output of this.outputs({ runId, attempt, history, artifacts }, signal))
        outputs.push(output);
    } finally {
      const { artifacts: made } = summaryOf(outputs);
      this.artifacts = { ...this.artifacts, ...made };
      const said = made[this.progressId]?.data;
      if (said !== undefined) this.progress.push(said);
    }
    return outputs;
  }

  /** An attempt that ends with a suspension. */
  async waits(): Promise<Suspension> {
    const ended = await this.run().catch((error: unknown) => error);
    expect(ended).toBeInstanceOf(Suspension);
    return ended as Suspension;
  }

  /** The next message, of a person or of an agent, after a question of the agent. */
  say(parts: Part[] | string, metadata?: object): Promise<AgentOutput[]> {
    this.attempt = 0;
    const asked = { messageId: `q-${this.history.length}`, role: Role.ROLE_AGENT };
    this.history.push(userMessage('?', asked));
    const messageId = `m-${this.history.length + 1}`;
    this.history.push(userMessage(parts, { messageId, ...(metadata && { metadata }) }));
    return this.run();
  }
}

const storedAs = ([artifactId, { kind, text, data }]: [
  string,
  ReturnType<typeof summaryOf>['artifacts'][string],
]) => ({
  artifactId,
  name: '',
  description: '',
  parts: data === undefined ? [plainTextPart(text)] : [jsonPart(data)],
  extensions: [],
  metadata: kind === undefined ? undefined : { 'baton.event': kind },
});
