import type { ModelMessage, ToolCallPart, ToolModelMessage, UserModelMessage } from 'ai';
import type { ApprovalAnswer, Decision } from '../../approvals.js';
import { historyBefore, type Turn } from '../../runtime.js';
import {
  type CallResult,
  type LlmEntry,
  type ModelStep,
  type RecordedEntry,
  recordedEntry,
} from './journal-entry.js';
import { resultOutput } from './tools/result-output.js';
import { NO_USAGE, type Usage, add } from './usage.js';

/** A call that the model has made, with its place among all calls of the task. */
export interface RecordedCall extends ToolCallPart {
  /** Number of the model's step in the task, from 1. */
  step: number;
  /** Place among the calls of that step, from 1. */
  index: number;
}

/** Name of a call, in whichever turn: some models number their calls anew with every answer. */
export const callIdOf = ({ step, index }: RecordedCall): string => `call-${step}-${index}`;

const NOT_MADE = { ok: false, content: 'The call was not made: the task ended before it.' };

/**
 * What was said in a task so far, by its journal: it goes on exactly where the last entry was written, whichever
 * worker has written it.
 */
export class Conversation {
  private readonly entries: RecordedEntry[] = [];
  private readonly recordedSteps: (ModelStep & RecordedEntry)[] = [];
  /** By step and by the id that the model gave to the call: some models number their calls anew with every answer. */
  private readonly results = new Map<string, CallResult['result']>();
  /** Where a call of that id was begun last. */
  private readonly begun = new Map<string, number>();
  private readonly decisions = new Map<string, Decision>();

  private constructor(
    private readonly turn: Turn,
    entries: RecordedEntry[],
  ) {
    for (const entry of entries) this.take(entry);
  }

  static async open(turn: Turn): Promise<Conversation> {
    return new Conversation(turn, (await turn.journal.read()).map(recordedEntry));
  }

  /** Write an entry; it counts once it is durable. */
  async add(entry: LlmEntry): Promise<void> {
    await this.turn.journal.append(entry);
    const position = (this.entries.at(-1)?.position ?? 0) + 1;
    this.take({ ...entry, runId: this.turn.runId, position });
  }

  /** Take this turn's message in as a prompt, unless an earlier attempt has done so. */
  async begin(): Promise<void> {
    if (this.ofThisRun().some(({ kind }) => kind === 'asked')) return;
    await this.add({ kind: 'asked', at: historyBefore(this.turn).length });
  }

  /** Every call of the model, of all turns of the task. */
  steps(): readonly (ModelStep & RecordedEntry)[] {
    return this.recordedSteps;
  }

  /** How often the model was called in this turn, without those whose answer was corrected. */
  stepsOfThisRun(): (ModelStep & RecordedEntry)[] {
    return this.steps().filter(({ runId }) => runId === this.turn.runId);
  }

  correctionsOfThisRun(): number {
    return this.ofThisRun().filter(({ kind }) => kind === 'correction').length;
  }

  /** The last thing that was said; undefined in a task that has just begun. */
  last(): RecordedEntry | undefined {
    return this.entries.at(-1);
  }

  /** The calls of a step of the task, from 1. */
  callsOf(step: number): RecordedCall[] {
    const content = this.steps()[step - 1]?.message.content;
    const calls =
      typeof content === 'string' ? [] : (content ?? []).filter(({ type }) => type === 'tool-call');
    return (calls as ToolCallPart[]).map((call, i) => ({ ...call, step, index: i + 1 }));
  }

  /** The calls of the model's last step that have no result yet. */
  pendingCalls(): RecordedCall[] {
    return this.callsOf(this.steps().length).filter((call) => !this.resultOf(call));
  }

  /** Ids of the calls with which the turn before has asked a person: this turn's message is the answer. */
  undecided(): string[] {
    const last = this.steps().at(-1);
    if (!last || last.runId === this.turn.runId) return [];
    const asked = this.waiting().findLast(({ runId }) => runId !== this.turn.runId);
    if (asked && asked.position > last.position) return asked.callIds;
    // Journals of version 0.1 do not say what was asked: every call that has neither result nor answer was.
    return this.pendingCalls()
      .filter((call) => !this.decisionOn(call))
      .map(callIdOf);
  }

  /** Ids of all calls that a person may ever have been asked about. */
  askedAbout(): string[] {
    const own = this.steps().flatMap((_step, i) => this.callsOf(i + 1).map(callIdOf));
    return [...own, ...this.waiting().flatMap(({ callIds }) => callIds)];
  }

  /** What a person has said when the child of a call asked last, by the ids that its calls have there. */
  answerTo(call: RecordedCall): ApprovalAnswer | undefined {
    const prefix = `${callIdOf(call)}/`;
    const isBelow = (callId: string): boolean => callId.startsWith(prefix);
    const asked = this.waiting().findLast(({ callIds }) => callIds.some(isBelow));
    if (!asked) return undefined;
    const answered = this.entries.find(
      (entry) => entry.kind === 'answered' && entry.position > asked.position,
    );
    const decisions = (answered?.kind === 'answered' ? answered.decisions : [])
      .filter(({ callId }) => isBelow(callId))
      .map((decision) => ({ ...decision, callId: decision.callId.slice(prefix.length) }));
    return answered && decisions.length > 0 ? { number: answered.position, decisions } : undefined;
  }

  /** What a person has said about a call. */
  decisionOn(call: RecordedCall): Decision | undefined {
    return this.decisions.get(callIdOf(call));
  }

  /** Whether this turn's message was taken as an answer. */
  hasAnswered(): boolean {
    return this.ofThisRun().some(({ kind }) => kind === 'answered');
  }

  /** What came of a call of the model. */
  resultOf({ toolCallId, step }: RecordedCall): CallResult['result'] | undefined {
    return this.results.get(`${step}/${toolCallId}`);
  }

  /** Whether a call that must not be made twice may have been made by a worker that died. */
  hasBegun({ toolCallId, step }: RecordedCall): boolean {
    return (this.begun.get(toolCallId) ?? 0) > (this.recordedSteps[step - 1]?.position ?? 0);
  }

  /** Tokens of the whole task, and of this turn. */
  usage(): { task: Usage; run: Usage } {
    const sum = (steps: readonly ModelStep[]) => steps.reduce((all, { usage }) => add(all, usage), NO_USAGE);
    return { task: sum(this.steps()), run: sum(this.stepsOfThisRun()) };
  }

  /**
   * The conversation as the model reads it.
   * @param prompt what the message at a place of the task's history is to the model
   */
  async messages(prompt: (at: number) => Promise<UserModelMessage>): Promise<ModelMessage[]> {
    const messages: ModelMessage[] = [];
    let step = 0;
    for (const entry of this.entries) {
      if (entry.kind === 'asked') messages.push(await prompt(entry.at));
      if (entry.kind === 'correction') messages.push({ role: 'user', content: entry.text });
      if (entry.kind !== 'step') continue;
      step += 1;
      messages.push(entry.message, ...this.resultsOf(step));
    }
    return messages;
  }

  private resultsOf(step: number): ToolModelMessage[] {
    const content = this.callsOf(step).map((call) => ({
      type: 'tool-result' as const,
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      output: resultOutput(this.resultOf(call) ?? NOT_MADE),
    }));
    return content.length > 0 ? [{ role: 'tool', content }] : [];
  }

  /** The next entry of the journal. What is looked up by each call of a task of many is found without a search. */
  private take(entry: RecordedEntry): void {
    this.entries.push(entry);
    if (entry.kind === 'step') this.recordedSteps.push(entry);
    if (entry.kind === 'begun') this.begun.set(entry.callId, entry.position);
    if (entry.kind === 'result') {
      const key = `${this.recordedSteps.length}/${entry.callId}`;
      if (!this.results.has(key)) this.results.set(key, entry.result);
    }
    for (const decision of entry.kind === 'answered' ? entry.decisions : []) {
      if (!this.decisions.has(decision.callId)) this.decisions.set(decision.callId, decision);
    }
  }

  private waiting() {
    return this.entries.filter((entry) => entry.kind === 'waiting');
  }

  private ofThisRun(): RecordedEntry[] {
    return this.entries.filter(({ runId }) => runId === this.turn.runId);
  }
}
