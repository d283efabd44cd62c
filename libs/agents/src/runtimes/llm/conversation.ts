import type {
  AssistantModelMessage,
  FinishReason,
  ModelMessage,
  ToolCallPart,
  ToolModelMessage,
  UserModelMessage,
  ToolResultPart,
} from 'ai';
import type { Decision, ApprovalAnswer } from '../../approvals.js';
import { type JournalEntry, historyBefore, type Turn } from '../../agent-runtime.js';
import type { ToolResult } from './tools/agent-tool.js';
import { type Usage, NO_USAGE, add } from './model-usage.js';

/** A message of the user that is a prompt: its index in the history of the task. */
export interface Asked {
  kind: 'asked';
  at: number;
}

/** When a call of the model was made. Journals of earlier releases do not have it. */
interface CallTime {
  /** ISO 8601 */
  at?: string;
  /** Its duration. */
  ms?: number;
}

/** A completed call of the model. */
export interface ModelStep extends CallTime {
  kind: 'step';
  message: AssistantModelMessage;
  finish: FinishReason;
  usage: Usage;
  model: string;
}

/** A call of the model that failed. It is for readers of the task; the conversation goes on as if it was not made. */
export interface FailedCall extends CallTime {
  kind: 'failed-call';
  usage: Usage;
  model: string;
  /** In plain words, for the callers of the task. */
  error: string;
}

/** A tool call that must not be repeated is about to start. */
interface CallBegun {
  kind: 'begun';
  callId: string;
}

/** The result of a tool call. */
export interface CallResult {
  kind: 'result';
  callId: string;
  result: ToolResult;
}

/** The turn ended with a request to approve these calls, also calls of child tasks. */
interface Waiting {
  kind: 'waiting';
  callIds: string[];
  /** ISO 8601, by the id of a call: from then on it counts as refused. */
  expiresAt?: Record<string, string>;
}

/** A message of the user that answered a request for approval. */
interface Answered {
  kind: 'answered';
  decisions: Decision[];
}

/** A message to the model about its invalid answer. */
interface Correction {
  kind: 'correction';
  text: string;
}

/** One journal entry of an llm agent. */
export type LlmEntry =
  | Asked
  | ModelStep
  | FailedCall
  | CallBegun
  | CallResult
  | Waiting
  | Answered
  | Correction;

/** An entry with its run and position in the journal. */
export type RecordedEntry = LlmEntry & Pick<JournalEntry, 'runId' | 'position'>;

/** Only this runtime writes into the journals of its tasks. */
export const recordedEntry = ({ runId, position, value }: JournalEntry): RecordedEntry => ({
  ...(value as LlmEntry),
  runId,
  position,
});

/** The text of a step's answer. */
export const textOfStep = ({ message: { content } }: Pick<ModelStep, 'message'>): string =>
  typeof content === 'string'
    ? content
    : content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The reasoning of a step. */
export const reasoningOfStep = ({ message: { content } }: Pick<ModelStep, 'message'>): string =>
  typeof content === 'string'
    ? ''
    : content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');

/** A tool call of the model, with its position among all calls of the task. */
export interface RecordedCall extends ToolCallPart {
  /** Number of the model's step in the task, from 1. */
  step: number;
  /** Position among the calls of that step, from 1. */
  index: number;
}

/** The id of a call. It is unique in the task; the ids of some models are only unique in one answer. */
export const callIdOf = ({ step, index }: RecordedCall): string => `call-${step}-${index}`;

const NOT_MADE = { ok: false, content: 'The call was not made: the task ended before it.' };

/** The conversation of a task, restored from its journal. It continues after the last entry of any worker. */
export class Conversation {
  private readonly entries: RecordedEntry[] = [];
  private readonly recordedSteps: (ModelStep & RecordedEntry)[] = [];
  /** Results by step and by the model's id of the call. The ids of some models are only unique in one answer. */
  private readonly results = new Map<string, CallResult['result']>();
  /** Journal position of the last `begun` entry of a call. */
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

  /** Appends an entry. It is durable when this resolves. */
  async add(entry: LlmEntry): Promise<void> {
    // What a model or a tool quotes of a secret must not go to another model or tool.
    const clean = this.turn.secrets.redactor.value(entry);
    await this.turn.journal.append(clean);
    const position = (this.entries.at(-1)?.position ?? 0) + 1;
    this.take({ ...clean, runId: this.turn.runId, position });
  }

  /** Adds this turn's message as a prompt, unless an earlier attempt has added it. */
  async begin(): Promise<void> {
    if (this.ofThisRun().some(({ kind }) => kind === 'asked')) return;
    await this.add({ kind: 'asked', at: historyBefore(this.turn).length });
  }

  /** All model calls, of all turns of the task. */
  steps(): readonly (ModelStep & RecordedEntry)[] {
    return this.recordedSteps;
  }

  /** The model calls of this turn. */
  stepsOfThisRun(): (ModelStep & RecordedEntry)[] {
    return this.steps().filter(({ runId }) => runId === this.turn.runId);
  }

  correctionsOfThisRun(): number {
    return this.ofThisRun().filter(({ kind }) => kind === 'correction').length;
  }

  /** The last entry; undefined in a new task. */
  last(): RecordedEntry | undefined {
    return this.entries.at(-1);
  }

  /** The tool calls of a step. Steps count from 1. */
  callsOf(step: number): RecordedCall[] {
    const content = this.steps()[step - 1]?.message.content;
    const calls =
      typeof content === 'string' ? [] : (content ?? []).filter(({ type }) => type === 'tool-call');
    return (calls as ToolCallPart[]).map((call, i) => ({ ...call, step, index: i + 1 }));
  }

  /** The tool calls of the last step that have no result yet. */
  pendingCalls(): RecordedCall[] {
    return this.callsOf(this.steps().length).filter((call) => !this.resultOf(call));
  }

  /** Ids of the calls that the previous turn asked a person to approve. This turn's message is the answer. */
  undecided(): string[] {
    const last = this.steps().at(-1);
    if (!last || last.runId === this.turn.runId) return [];
    const asked = this.waiting().findLast(({ runId }) => runId !== this.turn.runId);
    if (asked && asked.position > last.position) return asked.callIds;
    // Journals of version 0.1 have no `waiting` entry. Then all calls without result and answer were asked.
    return this.pendingCalls()
      .filter((call) => !this.decisionOn(call))
      .map(callIdOf);
  }

  /** Ids of all calls that a person may have been asked to approve. */
  askedAbout(): string[] {
    const own = this.steps().flatMap((_step, i) => this.callsOf(i + 1).map(callIdOf));
    return [...own, ...this.waiting().flatMap(({ callIds }) => callIds)];
  }

  /** A person's answer to the last question of a call's child. The call ids are those of the child. */
  answerTo(call: RecordedCall): ApprovalAnswer | undefined {
    const prefix = `${callIdOf(call)}/`;
    const isBelow = (callId: string): boolean => callId.startsWith(prefix);
    const asked = this.waiting().findLast(({ callIds }) => callIds.some(isBelow));
    if (!asked) return undefined;
    const answered = this.entries.find(
      (entry) => entry.kind === 'answered' && entry.position > asked.position,
    );
    const below = (answered?.kind === 'answered' ? answered.decisions : []).filter(({ callId }) =>
      isBelow(callId),
    );
    if (!answered || below.length === 0) return undefined;
    const by = below[0]?.by;
    const decisions = below.map((decision) => ({
      ...decision,
      callId: decision.callId.slice(prefix.length),
    }));
    return { number: answered.position, decisions, ...(by && { by }) };
  }

  /** A person's decision about a call. */
  decisionOn(call: RecordedCall): Decision | undefined {
    return this.decisions.get(callIdOf(call));
  }

  /** When a call counts as refused, as a person was told first; undefined = never. In ms. */
  expiryOf(callId: string): number | undefined {
    const first = this.waiting().find(({ expiresAt }) => expiresAt?.[callId] !== undefined);
    return first && Date.parse(first.expiresAt?.[callId] ?? '');
  }

  /** Whether this turn's message was taken as an answer. */
  hasAnswered(): boolean {
    return this.ofThisRun().some(({ kind }) => kind === 'answered');
  }

  /** The result of a tool call, if there is one. */
  resultOf({ toolCallId, step }: RecordedCall): CallResult['result'] | undefined {
    return this.results.get(`${step}/${toolCallId}`);
  }

  /** Whether a crashed worker may have made a call that must not be repeated. */
  hasBegun({ toolCallId, step }: RecordedCall): boolean {
    return (this.begun.get(toolCallId) ?? 0) > (this.recordedSteps[step - 1]?.position ?? 0);
  }

  /** Tokens of the whole task, and of this turn. Failed calls count. */
  usage(): { task: Usage; run: Usage } {
    const sum = (entries: readonly RecordedEntry[]) =>
      entries.reduce(
        (all, entry) => (entry.kind === 'step' || entry.kind === 'failed-call' ? add(all, entry.usage) : all),
        NO_USAGE,
      );
    return { task: sum(this.entries), run: sum(this.ofThisRun()) };
  }

  /**
   * The messages for the model.
   * @param prompt converts the message at an index of the task's history
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

  /** Adds an entry to the indexes, so that lookups need no search. */
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

/** Maximum characters of one result. More would push the conversation out of the model's context. */
const MAX_CHARACTERS = 100_000;

/** A tool result as the model reads it. */
export function resultOutput({ ok, content, text }: ToolResult): ToolResultPart['output'] {
  const whole = text ?? (typeof content === 'string' ? content : JSON.stringify(content ?? null));
  const cut = whole.length - MAX_CHARACTERS;
  const value =
    cut > 0 ? `${whole.slice(0, MAX_CHARACTERS)}\n… (${cut} more characters were cut off)` : whole;
  return { type: ok ? 'text' : 'error-text', value };
}
