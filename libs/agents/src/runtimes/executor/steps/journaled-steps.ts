import { clock } from '@baton/telemetry';
import { detailsFromJson, type DetailsJson, detailsToJson, Message } from '@baton/a2a';
import { historyBefore, type JournalEntry, type Turn } from '../../../agent-runtime.js';
import type { ApprovalAnswer, Decision } from '../../../approvals.js';
import { effectKey } from '../../../effect-key.js';
import { taskOfEffects } from '../../../task-origin.js';
import type { ModelStep } from '../../llm/llm-entry.js';
import { addUsage, type ModelUsage, NO_USAGE } from '../../llm/model-usage.js';
import { type Compensating, type RecordedStep, STEP_LIMITS, type StepReply } from '../step-protocol.js';
import { modelAnswer } from '../turn-models.js';
import { type MadeCall, resultOf } from '../turn-tools.js';
import { type OpenStep, recordOf } from './open-step.js';
import { failureOf, invalid } from './step-checks.js';
import {
  type Continued,
  type Ended,
  type EntryHead,
  isStepEntry,
  type NewStepEntry,
  type Noted,
  type StepEntry,
} from './step-entry.js';

/**
 * The steps of a task as its journal has them. Reads what earlier attempts have stored, and stores what this one reports. Every entry is
 * fenced by the attempt.
 */
export class JournaledSteps {
  /** The steps of this execution. */
  readonly steps: OpenStep[] = [];
  private ends = 0;
  /** Bytes of the entries of all executions, and the number of their steps. */
  private bytes = 0;
  private total = 0;
  /** Head of the log at the last entry of this execution. */
  private head: number | undefined;
  private execution = 1;
  /** Set if this execution began with `continueAs`. */
  private continued: Continued | undefined;
  /** Questions of this execution with which a turn has ended, and those of this run, as far as they have an entry. */
  private posed = 0;
  posedByRun = 0;
  /** Id of the step whose question this turn's message answers. */
  asking: number | undefined;
  /** Set once the code of the execution has thrown with steps to compensate. */
  compensating: Compensating | undefined;
  /** Whether the log has nothing beyond the last entry. Then artifacts continue where they were. */
  isExact = false;
  /** Position of the last entry in the journal. */
  private position = 0;
  /** Tokens of the model calls: of this run, and of the task as far as the journal goes back. */
  private spent = { run: NO_USAGE, task: NO_USAGE };
  /** The model that was called last. */
  private lastModel: string | undefined;

  private constructor(readonly turn: Turn) {}

  /** Reads the steps of a turn. The first attempt of a task has none, and reads nothing. */
  static async open(turn: Turn): Promise<JournaledSteps> {
    const journal = new JournaledSteps(turn);
    if (turn.attempt === 1 && historyBefore(turn).length === 0 && !turn.origin) return journal;
    const entries = await turn.journal.read();
    journal.position = entries.at(-1)?.position ?? (turn.origin ? 1 : 0);
    journal.restore(entries.filter(isStepEntry));
    return journal;
  }

  /** JSON of the state that the last execution has passed to `continueAs`. */
  get lastState(): string | undefined {
    return this.continued?.state;
  }

  /** The steps that the code has begun before. */
  get recorded(): RecordedStep[] {
    return this.steps.map((step) => ({
      ...recordOf(step),
      ...(step.kind === 'run' && { key: this.keyOf(step) }),
    }));
  }

  /** The turn as it was when the execution began: after an answer the code runs again with its first message. */
  get firstTurn(): Turn {
    const { turn } = this;
    const { start, details } = this.continued ?? this.steps.find((step) => step.start !== undefined) ?? {};
    const message = start === undefined ? undefined : turn.task.history[start];
    if (start === undefined || !message) return turn;
    const task = { ...turn.task, history: turn.task.history.slice(0, start + 1) };
    return { ...turn, message, details: detailsFromJson(details), task };
  }

  /** Tokens of the model calls, and the last model. Undefined: none was called. */
  get usage(): (ModelUsage & { model: string }) | undefined {
    return this.lastModel === undefined ? undefined : { ...this.spent.task, model: this.lastModel };
  }

  /** Tokens of the model calls in this run. */
  get spentByRun(): ModelUsage {
    return this.spent.run;
  }

  /**
   * Stores an entry when all that was published before it is in the log. So what the code publishes while it replays is in the log already.
   * @returns the entry as it is stored
   */
  async append<Entry extends NewStepEntry>(entry: Entry): Promise<Entry & Omit<EntryHead, 'id'>> {
    const value = await this.entryOf(entry);
    await this.turn.journal.append(value);
    this.position += 1;
    this.head = value.head;
    return value;
  }

  /**
   * Stores and applies an entry about a call that is under way, without a message to the process.
   * @param record what is recorded of the call, to be stored with it
   * @returns its position in the journal
   */
  async note(entry: Noted, record?: string): Promise<number> {
    const at = entry.at ?? clock.date().toISOString();
    const value = { ...entry, execution: this.execution, head: this.head ?? -1, at };
    this.assertRoom(value);
    await this.turn.journal.append(value, record);
    this.position += 1;
    if (value.event === 'called' && value.kind !== 'result') this.count(value, true);
    this.apply(value);
    return this.position;
  }

  /**
   * Ends this execution. All its entries are replaced by the first one of the next.
   * @param state JSON
   * @returns the steps of the next execution, in the same turn
   */
  async restart(state: string): Promise<JournaledSteps> {
    const next = new JournaledSteps(this.turn);
    next.execution = this.execution + 1;
    const entry = await next.entryOf({ event: 'continued', id: 0, state, ...this.firstMessage() });
    await this.turn.journal.restart(entry);
    next.position = this.position + 1;
    next.spent = this.spent;
    next.lastModel = this.lastModel;
    next.apply(entry);
    return next;
  }

  async end(
    step: OpenStep,
    { result, error, decision }: Pick<Ended, 'result' | 'error' | 'decision'>,
  ): Promise<StepReply> {
    const end = { ...(result !== undefined && { result }), ...(error && { error }) };
    await this.append({ event: 'ended', id: step.id, ...end, ...(decision && { decision }) });
    step.ended = { order: ++this.ends, ...end };
    delete step.child;
    return {};
  }

  /** Ends a step with an error. */
  async fail(step: OpenStep, message: string): Promise<StepReply> {
    const error = failureOf({ name: 'Error', message });
    await this.end(step, { error });
    return { error };
  }

  /** Updates the steps from an entry of the journal. */
  apply(entry: StepEntry): void {
    const step = this.steps[entry.id - 1];
    if (entry.event === 'posed') {
      if (step) step.asked = ++this.posed;
      // If the code has published nothing since the entry before, two events follow: the question, and that the task works again.
      if (entry.head >= 0 && entry.head === this.head) this.head += 2;
      return;
    }
    // No reply has reached the process yet: its events until the step ends come after the entry.
    if (entry.event === 'called') {
      if (step && entry.kind !== 'failed-call') step.called = entry;
      return;
    }
    if (entry.event === 'sent') {
      if (!step) return;
      // A person who has a call repeated does not change it.
      if (!step.isSent) step.input = step.decision?.input ?? step.input;
      step.isSent = true;
      delete step.decision;
      return;
    }
    if (entry.event === 'unsent' || entry.event === 'remote') {
      if (!step) return;
      step.isSent = false;
      if (entry.event === 'remote') step.remote = { remote: entry.remote, settings: entry.settings };
      return;
    }
    this.head = entry.head;
    if (entry.event === 'compensating') {
      const { error, steps, canceled, unknown, hasLooked } = entry;
      this.compensating = { error, steps, ...(canceled && { canceled, unknown, hasLooked }) };
      return;
    }
    if (entry.event === 'continued') {
      this.continued = entry;
      return;
    }
    if (entry.event === 'begun') {
      const { id, name, nth, kind, alone, until, agent, start, details, compensates } = entry;
      if (step) {
        if (compensates) step.compensates = true;
        step.attempts += 1;
        if (kind === 'run') step.isUnknown = true;
        delete step.answer;
        return;
      }
      const optional = {
        ...(until !== undefined && { until }),
        ...(agent !== undefined && { agent }),
        ...(start !== undefined && { start }),
        ...(details !== undefined && { details }),
        ...(kind === 'run' && { isUnknown: true as const }),
        ...(compensates && { compensates }),
        ...(this.compensating && { undoes: true as const }),
      };
      this.steps.push({ id, name, nth, kind, alone, attempts: 1, failures: 0, ...optional });
    } else if (step && entry.event === 'failed') {
      step.failures += 1;
      step.until = entry.until;
      delete step.called;
      if (!entry.decision) delete step.isUnknown;
    } else if (step && entry.event === 'asked') {
      const { start, details, expiresAt, cap, questions, forms, signIn } = entry;
      step.asking = {
        ...(questions && { questions }),
        ...(forms && { forms }),
        ...(signIn && { signIn }),
      };
      if (expiresAt !== undefined) step.expiresAt ??= expiresAt;
      if (cap) {
        step.cap = cap;
        step.capsAsked = (step.capsAsked ?? 0) + 1;
        delete step.decision;
      }
      Object.assign(step, { ...(start !== undefined && { start }), ...(details && { details }) });
    } else if (step && entry.event === 'answered') {
      if (step.kind !== 'tool' && step.kind !== 'model') step.answer = entry.answer;
      else if (entry.decisions) {
        step.answered = answerAfter(step.answered, `${this.callIdOf(step)}/`, entry.decisions);
        delete step.problem;
      } else if (entry.decision) {
        step.decision = entry.decision;
        delete step.problem;
      } else if ('problem' in entry.answer) step.problem = entry.answer.problem;
    } else if (step && entry.event === 'ended') {
      const output = step.called && !entry.error ? resultFrom(step.called, entry.result) : entry.result;
      const result = entry.answer === undefined ? output : this.answerAt(entry.answer, entry.details);
      step.ended = {
        order: ++this.ends,
        ...(result !== undefined && { result }),
        ...(entry.error && { error: entry.error }),
      };
    }
  }

  /** Counts a step that begins. Throws AgentError if the task has too many. */
  countStep(): void {
    const max = STEP_LIMITS.steps * (this.compensating ? 2 : 1);
    if (this.total >= max) throw invalid(`more than ${max} steps in a task`);
    this.total += 1;
  }

  openStep(id: number): OpenStep {
    const step = this.steps[id - 1];
    if (!step || step.ended) throw invalid('a step that is not under way');
    return step;
  }

  openQuestions(): OpenStep[] {
    return this.steps.filter(({ kind, ended }) => kind === 'input' && !ended);
  }

  /** The effect key of a step. */
  keyOf({ nth, name }: Pick<RecordedStep, 'nth' | 'name'>): string {
    return effectKey(taskOfEffects(this.turn), 'step', this.execution, nth, name);
  }

  /** The id of a step's call of a model, a tool or an agent. It is unique in the task. */
  callIdOf({ id }: OpenStep): string {
    return `step-${this.execution}-${id}`;
  }

  /** Position of the first message of the execution, with `metadata` and `configuration` of its request. */
  firstMessage(): Pick<Continued, 'start' | 'details'> {
    const { firstTurn } = this;
    const details = detailsToJson(firstTurn.details);
    const saysSomething = Object.keys(details).length > 0;
    return { start: historyBefore(firstTurn).length, ...(saysSomething && { details }) };
  }

  private restore(entries: readonly (JournalEntry & { value: StepEntry })[]): void {
    const last = entries.at(-1);
    if (!last) return;
    const begun = new Set<string>();
    this.posedByRun = entries.filter(
      ({ runId, value }) => runId === this.turn.runId && value.event === 'posed',
    ).length;
    for (const { value, runId } of entries) {
      this.bytes += JSON.stringify(value).length;
      if (value.event === 'called' && value.kind !== 'result') this.count(value, runId === this.turn.runId);
      // A step is begun again after a crash.
      if (value.event !== 'continued') begun.add(`${value.execution} ${value.id}`);
    }
    this.total = begun.size;
    const isOwn = entries.some(({ runId }) => runId === this.turn.runId);
    const latest = last.value.execution;
    const question = isOwn
      ? undefined
      : openQuestion(entries.filter(({ value }) => value.execution === latest));
    // A message that answers no question starts a new execution.
    this.execution = isOwn || question !== undefined ? latest : latest + 1;
    for (const { value } of entries) if (value.execution === this.execution) this.apply(value);
    // Copied entries are about the log of another task.
    const isCopied = last.position <= 1 + (this.turn.origin?.copied ?? -1);
    this.isExact = this.head === this.turn.log.startedAt && !isCopied;
    this.asking = question;
  }

  /** The message of the caller, with `metadata` and `configuration` of its request, as JSON. */
  private answerAt(index: number, request: DetailsJson = {}): string {
    const message = this.turn.task.history[index] ?? this.turn.message;
    return JSON.stringify({ message: Message.toJSON(message), request });
  }

  private count({ usage, model }: Pick<ModelStep, 'usage' | 'model'>, isOfThisRun: boolean): void {
    const { run, task } = this.spent;
    this.spent = { run: isOfThisRun ? addUsage(run, usage) : run, task: addUsage(task, usage) };
    this.lastModel = model;
  }

  /** The entry as it is stored, when all that was published before it is in the log. */
  private async entryOf<Entry extends NewStepEntry>(entry: Entry): Promise<Entry & Omit<EntryHead, 'id'>> {
    const { turn } = this;
    const flushed = await turn.log.flush();
    // The end of a text that may be the beginning of a secret is held back.
    const head = turn.secrets.redactor.isEmpty ? flushed : -1;
    const value = { execution: this.execution, at: clock.date().toISOString(), head, ...entry };
    this.assertRoom(value);
    return value;
  }

  /** Counts the bytes of a new entry. */
  private assertRoom(entry: StepEntry | NewStepEntry): void {
    this.bytes += JSON.stringify(entry).length;
    const isUndoing = this.compensating !== undefined || entry.event === 'compensating';
    if (this.bytes > STEP_LIMITS.totalBytes + (isUndoing ? STEP_LIMITS.compensationBytes : 0)) {
      throw invalid(`steps with more than ${STEP_LIMITS.totalBytes} bytes of results in a task`);
    }
  }
}

/** The step of an execution that an answer is for: the one with whose question a turn has ended last, or the first one without an answer. */
function openQuestion(entries: readonly { value: StepEntry }[]): number | undefined {
  const open = new Set<number>();
  let last: number | undefined;
  for (const { value } of entries) {
    if (value.event === 'posed') {
      last = value.id;
      continue;
    }
    const asks = value.event === 'asked' || (value.event === 'begun' && value.kind === 'input');
    // A step that asks again is the last one: the process asks about the others before it.
    open.delete(value.id);
    if (asks) open.add(value.id);
  }
  return last !== undefined && open.has(last) ? last : [...open][0];
}

/**
 * JSON of the answer of a model, or of the result of a tool. @param ended JSON of the report of its process: the answer does not
 * match its schema
 */
function resultFrom(called: ModelStep | MadeCall, ended: string | undefined): string {
  if (called.kind === 'result') return resultOf(called);
  // oxlint-disable-next-line no-restricted-properties -- bounded, and of the operator's code
  const problem = ended === undefined ? {} : (JSON.parse(ended) as object);
  return JSON.stringify({ ...modelAnswer(called), ...problem });
}

/** A person's answer to questions of a server. Each has another number. */
function answerAfter(
  before: ApprovalAnswer | undefined,
  prefix: string,
  all: readonly Decision[],
): ApprovalAnswer {
  const decisions = all.map((each) => ({ ...each, callId: each.callId.slice(prefix.length) }));
  const by = all[0]?.by;
  return { number: (before?.number ?? 0) + 1, decisions, ...(by && { by }) };
}
