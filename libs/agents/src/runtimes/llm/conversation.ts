import { firstCharacters } from '@baton/a2a';
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
import type { CapQuestion } from '../../cap-reached.js';
import { capQuestionId } from './approval/cap-question.js';
import type { WrongCall } from './answer-calls.js';
import type { ToolResult } from './tools/tool-sources.js';
import { type ModelUsage, NO_USAGE, add } from './model-usage.js';

/** A message of the user that is a prompt: its index in the history of the task. */
export interface UserPrompt {
  kind: 'asked';
  at: number;
}

/** When a call of the model or of a tool was made. Journals of earlier releases do not have it. */
interface CallTime {
  /** ISO 8601 */
  at?: string;
  /** Its duration. */
  ms?: number;
}

/** A completed call of the model. */
export interface ModelStep extends CallTime {
  kind: 'step';
  /** Has calls only if the answer is whole, and all its calls are. */
  message: AssistantModelMessage;
  finish: FinishReason;
  /** The provider's own reason for the end of the answer. Journals of releases up to 0.2 do not have it. */
  rawFinish?: string;
  /** The tools that the answer asks for, if no call of it is made. */
  notMade?: string[];
  /** The calls that are the reason for it. The model corrects them once. */
  wrongCalls?: WrongCall[];
  usage: ModelUsage;
  model: string;
  /** Its number among the `fallback` models of the agent, from 1. Unset: the agent's `model`. */
  fallback?: number;
}

/** A call of the model that failed. It is for readers of the task; the conversation goes on as if it was not made. */
export interface FailedCall extends CallTime {
  kind: 'failed-call';
  usage: ModelUsage;
  model: string;
  /** As of a step. */
  fallback?: number;
  /** In plain words, for the callers of the task. */
  error: string;
}

/** The two ids of a call. */
interface CallIds {
  /** The model's id. Two calls may have the same. Releases up to 0.2 know a call by it, and may run beside this one. */
  callId: string;
  /** Baton's id (`callIdOf`). Journals of releases up to 0.2 do not have it. */
  call?: string;
}

/** A tool call that must not be repeated without a person's word is about to be sent. Without a result its outcome is unknown. */
interface CallBegun extends CallIds {
  kind: 'begun';
}

/** The result of a tool call. */
export interface CallResult extends CallIds, CallTime {
  kind: 'result';
  /** Name of the tool, as the model wrote it. Journals of releases up to 0.2 do not have it. */
  tool?: string;
  /** The input to which a person has changed the call. */
  input?: unknown;
  result: ToolResult;
}

/** The turn ended with a request to approve these calls, also calls of child tasks. */
interface WaitingForApproval {
  kind: 'waiting';
  callIds: string[];
  /** ISO 8601, by the id of a call: from then on it counts as refused. */
  expiresAt?: Record<string, string>;
  /** It asks about no call, but about a spending cap. */
  cap?: CapQuestion;
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
  | UserPrompt
  | ModelStep
  | FailedCall
  | CallBegun
  | CallResult
  | WaitingForApproval
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
  /** The id of the call in requests to the model: the model's own id, or another one if two calls have the same. */
  sentId: string;
}

/** Baton's id of a call. It is unique in the task. The ids of models are not, not even in one answer. */
export const callIdOf = ({ step, index }: Pick<RecordedCall, 'step' | 'index'>): string =>
  `call-${step}-${index}`;

/** Both ids of a call for the journal. */
export const idsOf = (call: RecordedCall): CallIds => ({ callId: call.toolCallId, call: callIdOf(call) });

/** An id for a call whose own id is taken. Mistral takes only ids of nine letters and digits. */
const replacementId = (number: number): string => `c${number.toString(36).padStart(8, '0')}`;

/** The tool with which a model reads on in a result that was cut. */
export const READ_RESULT = 'read_result';

const NOT_MADE = { ok: false, content: 'The call was not made: the task ended before it.' };

/** The model that a request is for, and its place among the models of the agent. */
interface AskedModel {
  model: string;
  index: number;
}

/** An answer without what only the model understands that has given it: its reasoning, ids and signatures. */
function withoutMemory({ role, content }: AssistantModelMessage): AssistantModelMessage {
  if (typeof content === 'string') return { role, content };
  const parts = content.filter(({ type }) => type !== 'reasoning');
  return { role, content: parts.map((part) => ('providerOptions' in part ? withoutOptions(part) : part)) };
}

function withoutOptions<T extends { providerOptions?: unknown }>(part: T): T {
  const { providerOptions: _, ...rest } = part;
  return rest as T;
}

/** The conversation of a task, restored from its journal. It continues after the last entry of any worker. */
export class Conversation {
  private readonly entries: RecordedEntry[] = [];
  private readonly recordedSteps: (ModelStep & RecordedEntry)[] = [];
  /** The calls of each step. */
  private readonly calls: RecordedCall[][] = [];
  /** Ids in requests to the model. */
  private readonly sentIds = new Set<string>();
  /** Results by Baton's id of the call. */
  private readonly results = new Map<string, CallResult['result']>();
  private isResultCut = false;
  /** Calls with a `begun` entry, by Baton's id: the position of the newest one. */
  private readonly begun = new Map<string, number>();
  private readonly decisions = new Map<string, Decision>();
  /** The newest decision whether to repeat a call whose outcome is unknown. */
  private readonly repetitions = new Map<string, { position: number; decision: Decision }>();

  private constructor(
    private readonly turn: Turn,
    entries: RecordedEntry[],
  ) {
    for (const entry of entries) this.take(entry);
  }

  static async open(turn: Turn): Promise<Conversation> {
    return new Conversation(turn, (await turn.journal.read()).map(recordedEntry));
  }

  /**
   * Appends an entry. It is durable when this resolves.
   * @param record what is recorded of the call, to be stored with it
   * @returns its position in the journal
   */
  async add(entry: LlmEntry, record?: string): Promise<number> {
    // A secret that a model or a tool quotes must not go to another model or tool.
    const clean = this.turn.secrets.redactor.value(entry);
    await this.turn.journal.append(clean, record);
    const position = (this.entries.at(-1)?.position ?? 0) + 1;
    this.take({ ...clean, runId: this.turn.runId, position });
    return position;
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
  callsOf(step: number): readonly RecordedCall[] {
    return this.calls[step - 1] ?? [];
  }

  /** The tool calls of the last step that have no result yet. */
  pendingCalls(): RecordedCall[] {
    return this.callsOf(this.steps().length).filter((call) => !this.resultOf(call));
  }

  /** Ids of the calls that the previous turn asked a person to approve. This turn's message is the answer. */
  undecided(): string[] {
    const last = this.steps().at(-1);
    if (last?.runId === this.turn.runId) return [];
    const asked = this.waiting().findLast(({ runId }) => runId !== this.turn.runId);
    if (asked && asked.position > (last?.position ?? 0)) return asked.callIds;
    if (!last) return [];
    // Journals of version 0.1 have no `waiting` entry. Then all calls without result and answer were asked.
    return this.pendingCalls()
      .filter((call) => !this.decisionOn(call))
      .map(callIdOf);
  }

  /** The id of a question about a spending cap: the same while it is not answered. */
  capQuestionId(): string {
    const asked = this.waiting().filter(({ cap }) => cap);
    const open = asked.at(-1)?.callIds.find((callId) => !this.decisions.has(callId));
    return open ?? capQuestionId(new Set(asked.flatMap(({ callIds }) => callIds)).size + 1);
  }

  /** What this turn's message has decided about a spending cap. */
  capDecision(): { question: CapQuestion; decision: Decision } | undefined {
    const decided = this.ofThisRun().flatMap((entry) => (entry.kind === 'answered' ? entry.decisions : []));
    for (const decision of decided) {
      const asked = this.waiting().findLast(({ cap, callIds }) => cap && callIds.includes(decision.callId));
      if (asked?.cap) return { question: asked.cap, decision };
    }
    return undefined;
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

  /** A person's decision whether to repeat a call whose outcome is unknown, since it was made for the last time. */
  repetitionOf(call: RecordedCall): Decision | undefined {
    const id = callIdOf(call);
    const found = this.repetitions.get(id);
    return found && found.position > (this.begun.get(id) ?? 0) ? found.decision : undefined;
  }

  /** The newest decision of a person about a call. */
  lastDecisionOn(call: RecordedCall): Decision | undefined {
    return this.repetitions.get(callIdOf(call))?.decision ?? this.decisionOn(call);
  }

  /** A call as it is made: with the input to which a person has changed it, if one has. */
  asDecided(call: RecordedCall): RecordedCall {
    const { input } = this.decisionOn(call) ?? {};
    return input === undefined ? call : { ...call, input };
  }

  /** When a call counts as refused, as a person was told first; undefined = never. In ms. */
  expiryOf(callId: string): number | undefined {
    const since = this.begun.get(callId) ?? 0;
    const first = this.waiting().find(
      ({ position, expiresAt }) => position > since && expiresAt?.[callId] !== undefined,
    );
    return first && Date.parse(first.expiresAt?.[callId] ?? '');
  }

  /** Whether this turn's message was taken as an answer. */
  hasAnswered(): boolean {
    return this.ofThisRun().some(({ kind }) => kind === 'answered');
  }

  /** The result of a tool call, if there is one. */
  resultOf(call: RecordedCall): CallResult['result'] | undefined {
    return this.results.get(callIdOf(call));
  }

  /** The result of the call with this id of Baton. */
  resultWithId(id: string): CallResult['result'] | undefined {
    return this.results.get(id);
  }

  /** Whether the model has read only the beginning of a result. */
  hasCutResult(): boolean {
    return this.isResultCut;
  }

  /** Whether a call was sent that must not be repeated without a person's word. */
  hasBegun(call: RecordedCall): boolean {
    return this.begun.has(callIdOf(call));
  }

  /** Tokens of the whole task, and of this turn. Failed calls count. */
  usage(): { task: ModelUsage; run: ModelUsage } {
    const sum = (entries: readonly RecordedEntry[]) =>
      entries.reduce(
        (all, entry) => (entry.kind === 'step' || entry.kind === 'failed-call' ? add(all, entry.usage) : all),
        NO_USAGE,
      );
    return { task: sum(this.entries), run: sum(this.ofThisRun()) };
  }

  /**
   * The messages for the model.
   * @param asked the model that reads them
   * @param prompt converts the message at an index of the task's history
   */
  async messages(
    asked: AskedModel,
    prompt: (at: number) => Promise<UserModelMessage>,
  ): Promise<ModelMessage[]> {
    const messages: ModelMessage[] = [];
    let step = 0;
    for (const entry of this.entries) {
      if (entry.kind === 'asked') messages.push(await prompt(entry.at));
      if (entry.kind === 'correction') messages.push({ role: 'user', content: entry.text });
      if (entry.kind !== 'step') continue;
      step += 1;
      messages.push(this.sentMessage(entry, step, asked), ...this.resultsOf(step));
    }
    return messages;
  }

  /** The model's answer as it goes back to the model. */
  private sentMessage(entry: ModelStep, step: number, asked: AskedModel): AssistantModelMessage {
    const isOwn = entry.model === asked.model && (entry.fallback ?? 0) === asked.index;
    const message = isOwn ? entry.message : withoutMemory(entry.message);
    // Reasoning and ids of a provider are only valid together with the calls.
    if (entry.wrongCalls) return { role: 'assistant', content: textOfStep(entry) };
    if (typeof message.content === 'string') return message;
    const calls = this.callsOf(step).values();
    const content = message.content.map((part) =>
      part.type === 'tool-call'
        ? { ...part, toolCallId: calls.next().value?.sentId ?? part.toolCallId }
        : part,
    );
    return { ...message, content };
  }

  private resultsOf(step: number): ToolModelMessage[] {
    const content = this.callsOf(step).map((call) => ({
      type: 'tool-result' as const,
      toolCallId: call.sentId,
      toolName: call.toolName,
      output: resultOutput(this.readByModel(call), callIdOf(call)),
    }));
    return content.length > 0 ? [{ role: 'tool', content }] : [];
  }

  /** The result of a call, and the input that a person has chosen for it: the model has asked for another one. */
  private readByModel(call: RecordedCall): ToolResult {
    const result = this.resultOf(call) ?? NOT_MADE;
    const { input } = this.decisionOn(call) ?? {};
    if (input === undefined) return result;
    const changed = `A person has changed the input of this call. It was made with ${JSON.stringify(input)}.`;
    return { ...result, text: `${changed}\n${textOfResult(result)}` };
  }

  /** Adds an entry to the indexes, so that lookups need no search. */
  private take(entry: RecordedEntry): void {
    this.entries.push(entry);
    if (entry.kind === 'step') this.takeStep(entry);
    if (entry.kind === 'begun') for (const id of this.idsIn(entry)) this.begun.set(id, entry.position);
    if (entry.kind === 'result') {
      for (const id of this.idsIn(entry)) if (!this.results.has(id)) this.results.set(id, entry.result);
      this.isResultCut ||= textOfResult(entry.result).length > readLimit(entry.result);
    }
    for (const decision of entry.kind === 'answered' ? entry.decisions : []) {
      const { callId } = decision;
      if (this.begun.has(callId)) this.repetitions.set(callId, { position: entry.position, decision });
      else if (!this.decisions.has(callId)) this.decisions.set(callId, decision);
    }
  }

  private takeStep(entry: ModelStep & RecordedEntry): void {
    this.recordedSteps.push(entry);
    const step = this.recordedSteps.length;
    const { content } = entry.message;
    const parts = typeof content === 'string' ? [] : content;
    const calls = parts.filter((part): part is ToolCallPart => part.type === 'tool-call');
    this.calls.push(
      calls.map((call, i) => ({ ...call, step, index: i + 1, sentId: this.unusedId(call.toolCallId) })),
    );
  }

  private unusedId(id: string): string {
    let unused = id;
    for (let number = this.sentIds.size; unused === '' || this.sentIds.has(unused); number++) {
      unused = replacementId(number);
    }
    this.sentIds.add(unused);
    return unused;
  }

  /** Baton's ids of the calls that an entry is about. An entry of releases up to 0.2 is about calls of the last step. */
  private idsIn({ callId, call }: CallIds): string[] {
    if (call !== undefined) return [call];
    return this.callsOf(this.recordedSteps.length)
      .filter(({ toolCallId }) => toolCallId === callId)
      .map(callIdOf);
  }

  private waiting() {
    return this.entries.filter((entry) => entry.kind === 'waiting');
  }

  private ofThisRun(): RecordedEntry[] {
    return this.entries.filter(({ runId }) => runId === this.turn.runId);
  }
}

/** Maximum characters of a result that a model reads at once. More would push the conversation out of its context. */
const MAX_CHARACTERS = 100_000;

/** How many characters of a result a model reads before it must ask for more. */
export const readLimit = ({ limit = MAX_CHARACTERS }: Pick<ToolResult, 'limit'>): number => limit;

/**
 * A tool result as the model reads it.
 * @param id the id with which the model reads on
 */
export function resultOutput(result: ToolResult, id: string): ToolResultPart['output'] {
  const { ok } = result;
  const whole = textOfResult(result);
  const limit = readLimit(result);
  const value = whole.length > limit ? beginning(whole, limit, id) : whole;
  // Anthropic refuses errors without a text.
  return { type: ok ? 'text' : 'error-text', value: value.trim() === '' ? '(no output)' : value };
}

function beginning(whole: string, limit: number, id: string): string {
  const start = firstCharacters(whole, limit);
  return (
    `${start}\n[cut off: these are the first ${start.length} of ${whole.length} characters. ` +
    `To read on, call ${READ_RESULT} with {"result":"${id}","from":${start.length}}]`
  );
}

/** A result as text. */
export const textOfResult = ({ content, text }: ToolResult): string =>
  text ?? (typeof content === 'string' ? content : JSON.stringify(content ?? null));
