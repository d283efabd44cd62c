import type { ApprovalAnswer, Decision } from '../../../approvals.js';
import type { CapQuestion } from '../../../cap-reached.js';
import type { Answered, RecordedEntry, WaitingForApproval } from '../llm-entry.js';
import { callIdOf, type RecordedCall } from '../recorded-call.js';
import { capQuestionId } from './cap-question.js';

/** The calls of the conversation, as far as its journal goes. */
interface RecordedCalls {
  steps(): readonly RecordedEntry[];
  callsOf(step: number): readonly RecordedCall[];
  pendingCalls(): readonly RecordedCall[];
  /** Position of the newest entry of a sent call. Undefined: no call was sent. */
  begunAt(callId: string): number | undefined;
}

/** What persons were asked about calls and spending caps in a conversation, and what they have decided. */
export class ApprovalHistory {
  private readonly waiting: (WaitingForApproval & RecordedEntry)[] = [];
  private readonly answers: (Answered & RecordedEntry)[] = [];
  private readonly decisions = new Map<string, Decision>();
  /** The newest decision whether to repeat a call whose outcome is unknown. */
  private readonly repetitions = new Map<string, { position: number; decision: Decision }>();

  /** @param runId the run of this turn */
  constructor(
    private readonly runId: string,
    private readonly calls: RecordedCalls,
  ) {}

  /** Adds an entry of the journal. Entries come in their order, after the calls that they are about. */
  addEntry(entry: RecordedEntry): void {
    if (entry.kind === 'waiting') this.waiting.push(entry);
    if (entry.kind !== 'answered') return;
    this.answers.push(entry);
    const { position } = entry;
    for (const decision of entry.decisions) {
      const { callId } = decision;
      if (this.calls.begunAt(callId) !== undefined) this.repetitions.set(callId, { position, decision });
      else if (!this.decisions.has(callId)) this.decisions.set(callId, decision);
    }
  }

  /** Ids of the calls that the previous turn asked a person to approve. This turn's message is the answer. */
  undecided(): string[] {
    const last = this.calls.steps().at(-1);
    if (last?.runId === this.runId) return [];
    const asked = this.waiting.findLast(({ runId }) => runId !== this.runId);
    if (asked && asked.position > (last?.position ?? 0)) return asked.callIds;
    if (!last) return [];
    // Journals of version 0.1 have no `waiting` entry. Then all calls without result and answer were asked.
    return this.calls
      .pendingCalls()
      .filter((call) => !this.decisionOn(call))
      .map(callIdOf);
  }

  /** Ids of the questions of the previous turn that ask for data. */
  openForms(): string[] {
    const asked = this.waiting.findLast(({ runId }) => runId !== this.runId);
    return asked?.forms ?? [];
  }

  /** The id of a question about a spending cap: the same while it is not answered. */
  capQuestionId(): string {
    const asked = this.waiting.filter(({ cap }) => cap);
    const open = asked.at(-1)?.callIds.find((callId) => !this.decisions.has(callId));
    return open ?? capQuestionId(new Set(asked.flatMap(({ callIds }) => callIds)).size + 1);
  }

  /** What this turn's message has decided about a spending cap. */
  capDecision(): { question: CapQuestion; decision: Decision } | undefined {
    for (const decision of this.answersOfThisRun().flatMap(({ decisions }) => decisions)) {
      const asked = this.waiting.findLast(({ cap, callIds }) => cap && callIds.includes(decision.callId));
      if (asked?.cap) return { question: asked.cap, decision };
    }
    return undefined;
  }

  /** Ids of all calls that a person may have been asked to approve. */
  askedAbout(): string[] {
    const own = this.calls.steps().flatMap((_step, i) => this.calls.callsOf(i + 1).map(callIdOf));
    return [...own, ...this.waiting.flatMap(({ callIds }) => callIds)];
  }

  /** A person's answer to the last question of a call's child. The call ids are those of the child. */
  answerTo(call: RecordedCall): ApprovalAnswer | undefined {
    const prefix = `${callIdOf(call)}/`;
    const isBelow = (callId: string): boolean => callId.startsWith(prefix);
    const asked = this.waiting.findLast(({ callIds }) => callIds.some(isBelow));
    if (!asked) return undefined;
    const answered = this.answers.find(({ position }) => position > asked.position);
    const below = (answered?.decisions ?? []).filter(({ callId }) => isBelow(callId));
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
    return found && found.position > (this.calls.begunAt(id) ?? 0) ? found.decision : undefined;
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

  /** When a call counts as refused: the time that its first question named. In ms; undefined = never. */
  expiryOf(callId: string): number | undefined {
    const since = this.calls.begunAt(callId) ?? 0;
    const first = this.waiting.find(
      ({ position, expiresAt }) => position > since && expiresAt?.[callId] !== undefined,
    );
    return first && Date.parse(first.expiresAt?.[callId] ?? '');
  }

  /** Whether this turn's message was taken as an answer. */
  hasAnswered(): boolean {
    return this.answersOfThisRun().length > 0;
  }

  private answersOfThisRun(): (Answered & RecordedEntry)[] {
    return this.answers.filter(({ runId }) => runId === this.runId);
  }
}
