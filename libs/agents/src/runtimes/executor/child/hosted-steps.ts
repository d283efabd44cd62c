import type { Part } from '@a2a-js/sdk';
import { setImmediate as nextTick, setTimeout as delay } from 'node:timers/promises';
import type {
  AgentReply,
  CallOptions,
  CodeTools,
  CodeToolSettings,
  DurableSteps,
  Duration,
  InputAnswer,
  InputOptions,
  Jsonify,
  ModelTool,
  StepCall,
  StateOutcome,
  StepOptions,
  ToolAnswer,
  Verified,
} from './steps.js';
import type { ModelCallAnswer, ModelPiece } from '../model-protocol.js';
import { cut, type TurnRequest } from '../protocol.js';
import {
  type Compensating,
  type OutcomeDecision,
  type Parked,
  type RecordedStep,
  type StateRequest,
  type StepFailure,
  type StepKind,
  type StepMessage,
  type StepReply,
  STEP_LIMITS,
} from '../step-protocol.js';
import { conversationBefore } from './conversation-before.js';
import { INPUT_TIMEOUT, InputTimeout } from './input-timeout.js';
import { type CallModel, HostedModel } from './hosted-model.js';
import { type CallTool, HostedTools } from './hosted-tools.js';
import { StepError } from './step-error.js';
import { failureOf, restoredError, withNotes } from './step-failures.js';
import { answerOf, jsonOf, milliseconds, partsOf, valueOf } from './step-values.js';
import { UnknownOutcome } from './unknown-outcome.js';
import { rejection, withinTurn } from './within-turn.js';

/** A shorter wait stays in the process: to leave it and come back costs more. */
const IN_PLACE_MS = 1_000;
/** A task that asks looks this often at the servers of tools, because each look asks again. An answer looks at once. */
const ASKING_MS = 600_000;
/** A compensation that takes longer has failed. */
const COMPENSATION_MS = 30_000;
/** Time for steps beside the one that has failed. */
const OTHERS_MS = 10_000;
/** No event reports their end. A turn that fails ends this much later at most. */
const POLL_MS = 20;
/** Characters of a step's name in that of its compensation. */
const MAX_UNDONE_NAME = 150;
/** Three tries within some three seconds pass over a short fault. An author sets `attempts` and `backoff` for others. */
const DEFAULT_ATTEMPTS = 3;
const DEFAULT_BACKOFF_MS = 1_000;
/** The pause doubles with each try, up to an hour. */
const MAX_BACKOFF_MS = 3_600_000;

type OnUnknown = NonNullable<StepOptions['onUnknown']>;
const ON_UNKNOWN: readonly OnUnknown[] = ['repeat', 'ask', 'fail'];

/** The end of a try. `json`: it is stored. `isFinal`: no further try. */
type TryOutcome =
  | { json: string | undefined }
  | { thrown: unknown; isFinal: boolean; decision?: OutcomeDecision };

/** What a step waits for. */
interface StepWait {
  /** In ms since 1970. */
  until?: number;
  /** It is about the server of a tool, which works by itself. */
  isOfServer?: true;
  input?: Parked['input'];
  /** For a question: see `RecordedStep`. */
  asked?: number | undefined;
}

/** A step of this attempt. */
interface HostedStep {
  record: RecordedStep;
  /** The worker knows it. */
  isKnown: boolean;
  /** It undoes another step: it continues when the code of the author has failed. */
  undoes: boolean;
  /** It can be undone. */
  compensates?: boolean;
}

/** The outcome of a step that a cancel has interrupted: no effect, or unknown. */
type Looked = 'absent' | 'unclear' | { problem: string };

/** A finished step that can be undone. */
interface Compensable {
  id: number;
  name: string;
  /** JSON of its result. */
  result: string | undefined;
  compensate: (result: unknown, call: StepCall) => unknown;
  backoff: Duration | undefined;
}

/** Dependencies of the steps of a turn. */
export interface StepChannel {
  say(message: StepMessage): void;
  /** Every step under way waits: the turn ends here. */
  park(parked: Parked): void;
  /** The code does not fit what earlier attempts have stored: the turn ends here (`HostedSteps.mismatch`). */
  leave(): void;
}

/**
 * The steps of one call of `execute`. Steps that earlier attempts have finished get their stored results, in the order in
 * which they had finished. All others run, and the worker stores how they end.
 */
export class HostedSteps {
  /** The functions for the author. They need no `this`. */
  readonly api: DurableSteps;
  private readonly recorded = new Map<string, RecordedStep>();
  private readonly recordedPatches = new Map<string, RecordedStep>();
  /** The answer that the code got for each patch. It gets the same answer until the execution ends. */
  private readonly patches = new Map<string, Promise<boolean>>();
  /** Recorded steps that the code has not called yet, by id. */
  private readonly uncalled = new Map<number, RecordedStep>();
  private readonly uses = new Map<string, number>();
  private count: number;
  /** Steps that were called and have not settled. */
  private pending = 0;
  /** Those of them that wait for something outside of this process. */
  private readonly parked: StepWait[] = [];
  private readonly deliveries: { order: number; deliver: () => void }[] = [];
  private isDelivering = false;
  private isContinuing = false;
  private readonly replies = new Map<number, (reply: StepReply) => void>();
  /** Listeners of the calls of models that are under way, by step. */
  private readonly pieceListeners = new Map<number, (piece: ModelPiece) => void>();
  private readonly stopping = new AbortController();
  /** Aborts when the turn is stopped, or left with steps that run. */
  private readonly leaving = new AbortController();
  /** How the code differs from what earlier attempts have stored, once that is known. Its later actions are ignored. */
  mismatch: string | undefined;
  /** True: a step that would do more than is recorded waits, so that nothing happens. */
  isReplay = false;
  /** Rejects when the turn is stopped. */
  private readonly stopped = rejection(this.stopping.signal);
  private readonly queue: (() => void)[] = [];
  private inFlight = 0;
  /** In the order in which they have ended. */
  private readonly finished: Compensable[] = [];
  /** Steps under way that have a `compensate`. */
  private compensable = 0;
  /** The code has thrown: its steps go no further. */
  private hasFailed: boolean;
  /** Resolves when an attempt that only compensates has all the steps to do so. In other attempts it stays open. */
  readonly collected: Promise<void>;
  private compensating: Compensating | undefined;
  /** Steps of a canceled task that are not known to have ended. */
  private readonly looked = new Map<number, Looked>();
  private onCollected: () => void = () => undefined;

  /** @param request of the turn: `compensating` is set if an earlier attempt has thrown */
  constructor(
    recorded: readonly RecordedStep[],
    private readonly channel: StepChannel,
    request: Partial<TurnRequest> = {},
  ) {
    const { compensating, lastState } = request;
    this.compensating = compensating;
    this.hasFailed = compensating !== undefined;
    this.collected = new Promise((resolve) => (this.onCollected = resolve));
    for (const record of recorded) {
      if (record.kind === 'patch') {
        this.recordedPatches.set(record.name, record);
        continue;
      }
      this.recorded.set(keyOf(record), record);
      this.uncalled.set(record.id, record);
    }
    this.count = recorded.length;
    this.api = {
      step: (name, run, options) =>
        this.tracked('run', name, (step) => this.run(step, run, options), options as UndoOptions),
      sleep: (name, duration) => this.tracked('sleep', name, (step) => this.sleep(step, duration)),
      waitForInput: (name, question, options) =>
        this.tracked('input', name, (step) => this.ask(step, question, options)),
      callAgent: (name, agent, message, options) =>
        this.tracked('agent', name, (step) => this.call(step, agent, message, options)),
      patched: (id) => this.patched(id),
      continueAs: (state) => this.continueAs(state),
      lastState: valueOf(lastState),
      model: (settings, step) => new HostedModel(settings, step, this.callModel),
      history: () =>
        this.tracked('run', 'history', (step) => this.run(step, () => conversationBefore(request))),
      tools: (settings) => handled(this.tools(settings)),
      contextState: {
        get: (key) => handled(this.useState({ key })),
        set: (key, value, { version } = {}) => handled(this.setState(key, value, version)),
      },
    };
  }

  /**
   * Whether an earlier attempt was beyond this point, so that the present output is a repetition. Code that has failed emits
   * nothing more.
   */
  get isReplaying(): boolean {
    return this.compensating !== undefined || this.uncalled.size > 0 || this.deliveries.length > 0;
  }

  /** The code has ended. That is a mismatch if earlier attempts began further steps. */
  onEnd(): void {
    if (this.hasFailed || this.stopping.signal.aborted) return;
    const [missing] = this.uncalled.values();
    if (missing) this.mismatch ??= `The code ends, but an earlier attempt began ${shown(missing)} here`;
  }

  onReply(id: number, reply: StepReply): void {
    const resolve = this.replies.get(id);
    this.replies.delete(id);
    resolve?.(reply);
  }

  onPiece(id: number, piece: ModelPiece): void {
    this.pieceListeners.get(id)?.(piece);
  }

  /** The turn is over: steps that wait reject. */
  stop(): void {
    const reason = new Error('The turn was stopped');
    this.leaving.abort(reason);
    this.stopping.abort(reason);
  }

  /** Counts a step while it is under way. */
  private tracked<T>(
    kind: StepKind,
    name: string,
    work: (step: HostedStep) => Promise<T>,
    undo?: UndoOptions,
    undoes = false,
  ): Promise<T> {
    const track = async (): Promise<T> => {
      this.stopping.signal.throwIfAborted();
      const { compensate, backoff } = undo ?? {};
      if (compensate !== undefined && typeof (compensate as unknown) !== 'function')
        throw new TypeError(`compensate of step "${name}" must be a function`);
      // The code that has failed is never continued.
      const isUnknown = compensate !== undefined && this.isUnknown(name);
      if (this.hasFailed && !undoes && !isUnknown && !this.hasEnded(name)) return await this.stopped;
      if (this.mismatch !== undefined) return await this.stopped;
      const step = this.enter(kind, name, undoes);
      if (typeof step === 'string') return await this.leave(step);
      step.compensates = compensate !== undefined;
      this.pending += 1;
      if (compensate) this.compensable += 1;
      try {
        if (this.isReplay && !step.record.ended) return await this.park({});
        if (isUnknown) await this.look(step, undo);
        const value = step.record.ended ? ((await this.replayed(step.record)) as T) : await work(step);
        if (compensate) {
          const result = jsonOf(value, 'The result of a step');
          this.noteFinished({ id: step.record.id, name, result, compensate, backoff });
        }
        return value;
      } finally {
        this.pending -= 1;
        if (compensate) this.compensable -= 1;
        this.leaveSoon();
      }
    };
    return handled(track());
  }

  /** Whether the next step of that name has ended in an earlier attempt. */
  private hasEnded(name: string): boolean {
    return this.recorded.get(keyOf({ name, nth: (this.uses.get(name) ?? 0) + 1 }))?.ended !== undefined;
  }

  private noteFinished(step: Compensable): void {
    this.finished.push(step);
    this.noteCollected();
  }

  private noteCollected(): void {
    if (!this.compensating) return;
    const { steps, unknown = [] } = this.compensating;
    const known = new Set([...this.finished.map(({ id }) => id), ...this.looked.keys()]);
    if ([...steps, ...unknown].every((id) => known.has(id))) this.onCollected();
  }

  /** Whether the next step of that name was under way, or between two tries, when its task was canceled. */
  private isUnknown(name: string): boolean {
    const record = this.recorded.get(keyOf({ name, nth: (this.uses.get(name) ?? 0) + 1 }));
    return record !== undefined && !record.ended && this.compensating?.unknown?.includes(record.id) === true;
  }

  /**
   * The task was canceled before the step had ended. Looks whether its effect is there. If it is, the step has ended now, and is undone.
   * Otherwise this never resolves: the code goes no further.
   */
  private async look(step: HostedStep, { verify, timeout }: UndoOptions = {}): Promise<void> {
    const { record } = step;
    const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout);
    let found: Looked = record.isUnknown ? 'unclear' : 'absent';
    for (let failures = 0; verify; failures++) {
      const outcome = await this.verified(step, verify, timeoutMs);
      if (outcome && 'json' in outcome) {
        const { json: result } = outcome;
        record.ended = { order: Infinity, ...(result !== undefined && { result }) };
        return;
      }
      found = outcome ? { problem: failureOf(outcome.thrown).message } : 'absent';
      if (!outcome || failures + 1 >= DEFAULT_ATTEMPTS) break;
      await delay(DEFAULT_BACKOFF_MS, undefined, { signal: this.stopping.signal });
    }
    this.looked.set(record.id, found);
    this.noteCollected();
    await this.stopped;
  }

  /**
   * The code has thrown: undoes its finished steps, the last one first. Each is a step of its own, so a crash continues with the next
   * attempt. Never rejects.
   * @returns the error with which the turn fails: of the attempt that has thrown first. Undefined: the task was canceled, and its steps are
   * undone now
   */
  async compensate(thrown: unknown): Promise<{ error: unknown } | undefined> {
    if (this.mismatch !== undefined || this.isReplay || this.stopping.signal.aborted)
      return { error: thrown };
    this.hasFailed = true;
    const first = this.compensating ? restoredError(this.compensating.error) : thrown;
    try {
      await this.othersEnd();
      if (!this.compensating) {
        if (this.finished.length === 0) return { error: thrown };
        const steps = this.finished.map(({ id }) => id).toReversed();
        const compensating = { error: failureOf(thrown), steps };
        await this.stored({ op: 'compensate', id: 0, ...compensating });
        this.compensating = compensating;
      }
      const unclear = await this.noteLooks(this.compensating);
      const problems = [...unclear, ...(await this.undoAll(this.compensating.steps))];
      if (problems.length === 0) return this.compensating.canceled ? undefined : { error: first };
      if (!this.compensating.canceled) return { error: withNotes(first, problems) };
      return { error: restoredError({ name: 'CompensationError', message: problems.join('; ') }) };
    } catch {
      // The turn was stopped. The next attempt continues.
      return { error: first };
    }
  }

  /**
   * Stores what the looks at the steps of a canceled task have found, before anything is undone.
   * @returns a sentence for each step whose outcome stays unknown because its `verify` has failed
   */
  private async noteLooks({ unknown = [], ...known }: Compensating): Promise<string[]> {
    const undone = new Set(this.finished.map(({ id }) => id));
    const found = unknown.filter((id) => undone.has(id)).toReversed();
    const open = unknown.filter((id) => !undone.has(id) && this.looked.get(id) !== 'absent');
    if (unknown.length > 0 && (!known.hasLooked || open.length < unknown.length)) {
      const steps = known.hasLooked ? [...known.steps, ...found] : [...found, ...known.steps];
      this.compensating = { ...known, steps, unknown: open };
      await this.stored({ op: 'compensate', id: 0, ...this.compensating });
    }
    return open.flatMap((id) => {
      const look = this.looked.get(id);
      if (look === 'unclear') return [];
      const why = typeof look === 'object' ? look.problem : 'the code no longer calls it';
      return [`it is not known whether step number ${id} was carried out: ${why}`];
    });
  }

  /** A step beside the one that has failed may still end. Waits for those that would be compensated, for a while. */
  private async othersEnd(): Promise<void> {
    const mayEnd = (): boolean =>
      this.compensable > 0 && (this.inFlight > 0 || this.deliveries.length > 0 || this.isDelivering);
    for (const end = Date.now() + OTHERS_MS; mayEnd() && Date.now() < end;) {
      await delay(POLL_MS, undefined, { signal: this.stopping.signal });
    }
  }

  /** @returns what is not undone, in words */
  private async undoAll(steps: readonly number[]): Promise<string[]> {
    const problems: string[] = [];
    for (const id of steps) {
      const step = this.finished.find((one) => one.id === id);
      if (!step) {
        problems.push(`step number ${id} is not compensated: the code no longer calls it`);
        continue;
      }
      const { name, result, compensate, backoff = DEFAULT_BACKOFF_MS } = step;
      const undo = async (call: StepCall): Promise<void> => void (await compensate(valueOf(result), call));
      // It waits in its place, so it must not wait for long.
      const options = {
        timeout: COMPENSATION_MS,
        backoff: Math.min(milliseconds(backoff), DEFAULT_BACKOFF_MS),
      };
      const undone = this.tracked(
        'run',
        `compensate ${cut(name, MAX_UNDONE_NAME)}`,
        (own) => this.run(own, undo, options),
        undefined,
        true,
      );
      await undone.catch((error: unknown) => {
        this.stopping.signal.throwIfAborted();
        problems.push(error instanceof Error ? error.message : String(error));
      });
    }
    return problems;
  }

  /**
   * Finds the record of a step, or makes one.
   * @returns how the code differs, if an earlier attempt took another way
   */
  private enter(kind: StepKind, name: string, undoes: boolean): HostedStep | string {
    assertName(name);
    const nth = (this.uses.get(name) ?? 0) + 1;
    this.uses.set(name, nth);
    const record = this.recorded.get(keyOf({ name, nth }));
    const [missing] = this.uncalled.values();
    if (!record) {
      if (missing && !undoes)
        return `Step ${shown({ name, nth })} is new, but an earlier attempt began ${shown(missing)} here`;
      return this.added(kind, name, nth, undoes);
    }
    if (record.kind !== kind) {
      return `Step ${shown(record)} was a step of kind "${record.kind}" in an earlier attempt, and is "${kind}" now`;
    }
    if (missing && missing.id < record.id && record.alone && !undoes) {
      return `Step ${shown(record)} comes before ${shown(missing)}, which came first in an earlier attempt`;
    }
    this.uncalled.delete(record.id);
    return { record, isKnown: true, undoes };
  }

  private added(kind: StepKind, name: string, nth: number, undoes: boolean): HostedStep {
    if (this.count >= STEP_LIMITS.steps && !undoes) {
      throw new RangeError(
        `a task has at most ${STEP_LIMITS.steps} steps: do more in one step, or begin again with continueAs()`,
      );
    }
    const record = { id: ++this.count, name, nth, kind, alone: this.pending === 0, attempts: 0, failures: 0 };
    return { record, isKnown: false, undoes };
  }

  private patched(id: string): Promise<boolean> {
    const known = this.patches.get(id);
    if (known) return known;
    const take = async (): Promise<boolean> => {
      this.stopping.signal.throwIfAborted();
      if (this.mismatch !== undefined) return this.stopped;
      assertName(id);
      const isPatched = this.findPatch(id);
      this.pending += 1;
      try {
        return isPatched && (await this.storePatch(isPatched));
      } finally {
        this.pending -= 1;
        this.leaveSoon();
      }
    };
    const answer = take();
    answer.catch(() => undefined);
    this.patches.set(id, answer);
    return answer;
  }

  /** False: an earlier attempt was beyond this place without the patch. */
  private findPatch(id: string): HostedStep | false {
    const record = this.recordedPatches.get(id);
    if (record) return { record, isKnown: true, undoes: false };
    return this.uncalled.size === 0 && this.added('patch', id, 1, false);
  }

  private async storePatch(step: HostedStep): Promise<true> {
    if (!step.isKnown) await this.begin(step);
    if (!step.record.ended) await this.stored({ op: 'end', id: step.record.id });
    return true;
  }

  /** The stored end of a step. Steps called at the same time settle in the order in which they had ended. */
  private async replayed({ name, kind, ended }: RecordedStep): Promise<unknown> {
    const { order = 0, result, error } = ended ?? {};
    await new Promise<void>((resolve) => {
      this.deliveries.push({ order, deliver: resolve });
      if (!this.isDelivering) void this.deliverAll();
    });
    if (error && kind === 'input' && error.code === INPUT_TIMEOUT) throw new InputTimeout(name, error);
    if (error) throw new StepError(name, error);
    return kind === 'input' ? answerOf(valueOf(result)) : valueOf(result);
  }

  private async deliverAll(): Promise<void> {
    this.isDelivering = true;
    // The code between two ends runs first, and may call further steps.
    await nextTick();
    while (this.deliveries.length > 0) {
      this.deliveries.sort((a, b) => a.order - b.order);
      this.deliveries.shift()?.deliver();
      await nextTick();
    }
    this.isDelivering = false;
  }

  /** Resolves when the results of finished steps are delivered, and fewer steps run than may. */
  private async turnToRun(): Promise<void> {
    while (this.deliveries.length > 0) await nextTick();
    if (this.inFlight >= STEP_LIMITS.inFlight) await new Promise<void>((resolve) => this.queue.push(resolve));
    this.inFlight += 1;
  }

  private ran(): void {
    this.inFlight -= 1;
    this.queue.shift()?.();
  }

  private async run<T>(
    step: HostedStep,
    run: (call: StepCall) => T | Promise<T>,
    options: StepOptions<never> = {},
  ): Promise<Jsonify<T>> {
    if (typeof run !== 'function') throw new TypeError(`step "${step.record.name}" needs a function`);
    const {
      attempts = DEFAULT_ATTEMPTS,
      backoff = DEFAULT_BACKOFF_MS,
      timeout,
      retryIf = () => true,
      verify,
      onUnknown = 'repeat',
    } = options;
    if (!Number.isInteger(attempts) || attempts < 1 || attempts > STEP_LIMITS.attempts) {
      throw new TypeError(`attempts of step "${step.record.name}" must be 1 to ${STEP_LIMITS.attempts}`);
    }
    const backoffMs = milliseconds(backoff);
    const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout);
    const { record } = step;
    if (!ON_UNKNOWN.includes(onUnknown)) {
      throw new TypeError(`onUnknown of step "${record.name}" must be ${ON_UNKNOWN.join(', ')}`);
    }
    // Steps begin in the order of their calls, so that the stored ones never have a gap.
    let begun = record.attempts === 0 ? this.begin(step) : undefined;
    for (;;) {
      let outcome: TryOutcome | undefined;
      if (!begun) {
        await this.until(record.until, step.undoes);
        outcome = await this.earlierOutcome(step, verify, onUnknown, timeoutMs);
      }
      outcome ??= await this.try(step, (begun ??= this.beginAgain(step, verify, onUnknown)), run, timeoutMs);
      begun = undefined;
      if ('json' in outcome) return valueOf(outcome.json) as Jsonify<T>;
      const isFinal = outcome.isFinal || record.failures + 1 >= attempts || !retryIf(outcome.thrown);
      const error = failureOf(outcome.thrown);
      const retryMs = Math.min(backoffMs * 2 ** record.failures, MAX_BACKOFF_MS);
      const { decision } = outcome;
      const { until } = await this.stored({
        op: 'fail',
        id: record.id,
        error,
        ...(!isFinal && { retryMs }),
        ...(decision && { decision }),
      });
      if (isFinal) throw new StepError(record.name, error);
      record.failures += 1;
      if (until !== undefined) record.until = until;
    }
  }

  /** One try. Its result is stored when this resolves with it. */
  private async try<T>(
    step: HostedStep,
    begun: Promise<unknown>,
    run: (call: StepCall) => T | Promise<T>,
    timeoutMs: number | undefined,
  ): Promise<TryOutcome> {
    await begun;
    await this.turnToRun();
    try {
      const { key = '', attempts: attempt } = step.record;
      let value: T;
      try {
        value = await withinTurn(timeoutMs, this.leaving.signal, async (signal) =>
          run({ attempt, key, signal }),
        );
      } catch (thrown) {
        this.stopping.signal.throwIfAborted();
        if (this.mismatch !== undefined) return await this.stopped;
        return { thrown, isFinal: false };
      }
      return await this.end(step, value);
    } finally {
      this.ran();
    }
  }

  /** Stores a result. An error is final: the work is done, and must not be done again. */
  private async end({ record }: HostedStep, value: unknown, decision?: OutcomeDecision): Promise<TryOutcome> {
    let json: string | undefined;
    try {
      json = jsonOf(value, 'The result of a step');
    } catch (thrown) {
      return { thrown, isFinal: true, ...(decision && { decision }) };
    }
    await this.stored({
      op: 'end',
      id: record.id,
      ...(json !== undefined && { result: json }),
      ...(decision && { decision }),
    });
    return { json };
  }

  /** The outcome of the try before, as far as it can be found out. Undefined: the function runs again. */
  private async earlierOutcome(
    step: HostedStep,
    verify: StepOptions['verify'],
    onUnknown: OnUnknown,
    timeoutMs: number | undefined,
  ): Promise<TryOutcome | undefined> {
    // An error of the function does not say either whether the effect is there: a connection may break after it.
    if (verify) return this.verified(step, verify, timeoutMs);
    const { id, isUnknown, answer } = step.record;
    if (!isUnknown || onUnknown === 'repeat') return undefined;
    if (onUnknown === 'fail') return { thrown: new UnknownOutcome(), isFinal: true, decision: 'failed' };
    if (!answer || 'problem' in answer) {
      await this.stored({ op: 'ask', id });
      return this.park({ input: { id, question: [] }, asked: step.record.asked });
    }
    return answer.done ? this.end(step, valueOf(answer.result), 'asked') : undefined;
  }

  private async verified(
    step: HostedStep,
    verify: NonNullable<StepOptions['verify']>,
    timeoutMs: number | undefined,
  ): Promise<TryOutcome | undefined> {
    await this.turnToRun();
    try {
      const { name, key = '' } = step.record;
      let found: Verified | undefined;
      try {
        found = await withinTurn(timeoutMs, this.stopping.signal, async (signal) => verify({ key, signal }));
      } catch (thrown) {
        this.stopping.signal.throwIfAborted();
        return { thrown, isFinal: false, decision: 'verified' };
      }
      if (typeof (found as Verified | null | undefined)?.done !== 'boolean') {
        const thrown = new TypeError(
          `verify of step "${name}" must return {done: true, result} or {done: false}`,
        );
        return { thrown, isFinal: true, decision: 'verified' };
      }
      return found.done ? await this.end(step, found.result, 'verified') : undefined;
    } finally {
      this.ran();
    }
  }

  private beginAgain(step: HostedStep, verify: StepOptions['verify'], onUnknown: OnUnknown): Promise<Stored> {
    const decision = verify ? 'verified' : onUnknown === 'ask' ? 'asked' : 'repeated';
    return this.begin(step, step.record.isUnknown ? { decision } : {});
  }

  private async begin(
    { record, undoes, compensates }: HostedStep,
    more: {
      ms?: number;
      agent?: string;
      request?: string;
      streams?: true;
      decision?: OutcomeDecision;
    } = {},
  ): Promise<Stored> {
    if (this.hasFailed && !undoes) return this.stopped;
    const { id, name, nth, kind, alone } = record;
    const undo = compensates ? { compensates } : {};
    const reply = await this.stored({ op: 'begin', id, name, nth, kind, alone, ...more, ...undo });
    record.attempts += 1;
    delete record.isUnknown;
    delete record.answer;
    if (reply.key !== undefined) record.key = reply.key;
    return reply;
  }

  private async sleep(step: HostedStep, duration: Duration | Date): Promise<void> {
    const ms =
      duration instanceof Date ? Math.max(0, duration.getTime() - Date.now()) : milliseconds(duration);
    if (!(ms <= STEP_LIMITS.sleepMs)) throw new TypeError('a sleep ends within a year, at a valid time');
    const until = step.isKnown ? step.record.until : (await this.begin(step, { ms })).until;
    await this.until(until);
    await this.stored({ op: 'end', id: step.record.id });
  }

  private async ask(
    step: HostedStep,
    question: string | Part[],
    { timeout }: InputOptions = {},
  ): Promise<InputAnswer> {
    const parts = typeof question === 'string' ? [{ text: question }] : partsOf(question);
    const ms = timeout === undefined ? undefined : milliseconds(timeout);
    const { id, name, asked } = step.record;
    const begun = step.isKnown ? step.record : await this.begin(step, ms === undefined ? {} : { ms });
    const { until } = begun;
    const left = until === undefined ? Infinity : until - Date.now();
    // The clock of this machine may be a little late. To ask again would be worse.
    if (!step.isKnown || left > IN_PLACE_MS) {
      return this.park({ input: { id, question: parts }, asked, ...(until !== undefined && { until }) });
    }
    if (left > 0) await delay(left, undefined, { signal: this.stopping.signal });
    const error = { name: 'InputTimeout', message: 'no answer came in time', code: INPUT_TIMEOUT };
    await this.stored({ op: 'fail', id, error });
    throw new InputTimeout(name, error);
  }

  private async call(
    step: HostedStep,
    agent: string,
    message: string,
    { data, taskId }: CallOptions = {},
  ): Promise<AgentReply> {
    const request = jsonOf({ message, data, taskId }, 'The request of a step');
    const reply = await this.begin(step, { agent, ...(request !== undefined && { request }) });
    if (reply.isWaiting) return this.park({});
    return valueOf(reply.result) as AgentReply;
  }

  private readonly callModel: CallModel = async (name, asked, onPiece) => {
    const request = jsonOf(asked, 'The request to a model', STEP_LIMITS.modelRequestBytes);
    const work = async (step: HostedStep): Promise<ModelCallAnswer> => {
      const { id } = step.record;
      if (onPiece) this.pieceListeners.set(id, onPiece);
      const more = { ...(request !== undefined && { request }), ...(onPiece && { streams: true as const }) };
      const { result, failed, asks } = await this.begin(step, more).finally(() =>
        this.pieceListeners.delete(id),
      );
      if (asks) return this.askPerson(step);
      if (failed) {
        await this.stored({ op: 'fail', id, error: failed });
        throw new StepError(name, failed);
      }
      const answer = valueOf(result) as ModelCallAnswer;
      const { wrong } = answer;
      // The worker has the answer already.
      await this.stored({ op: 'end', id, ...(wrong && { result: JSON.stringify({ wrong }) }) });
      return answer;
    };
    return this.tracked('model', name, work);
  };

  private async tools(settings: CodeToolSettings): Promise<CodeTools> {
    const list = await this.useTools<ModelTool[]>('list tools', { settings });
    const call: CallTool = (tool, input) =>
      handled(this.useTools<ToolAnswer>(tool, { settings, call: { tool, input: input ?? {} } }));
    return new HostedTools(list, call);
  }

  private async useTools<T>(name: string, asked: object): Promise<T> {
    const request = jsonOf(asked, 'The request to a tool');
    const use = async (step: HostedStep): Promise<T> => {
      const { id } = step.record;
      const { result, failed, asks, until } = await this.begin(step, {
        ...(request !== undefined && { request }),
      });
      if (until !== undefined) return this.park({ until, isOfServer: true });
      if (asks) return this.askPerson(step);
      if (failed) {
        await this.stored({ op: 'fail', id, error: failed });
        throw new StepError(name, failed);
      }
      // The worker has the result of a call that was made. It does not have others.
      await this.stored({ op: 'end', id, ...(result !== undefined && { result }) });
      return valueOf(result) as T;
    };
    return this.tracked('tool', name, use);
  }

  /** A person is asked before a call of a model or a tool continues. The worker has the question. */
  private async askPerson({ record: { id, asked } }: HostedStep): Promise<never> {
    await this.stored({ op: 'ask', id });
    return this.park({ input: { id, question: [] }, asked });
  }

  private async setState(key: string, value: unknown, expected: number | undefined): Promise<StateOutcome> {
    const json = jsonOf(value, 'A value of the state', STEP_LIMITS.stateBytes);
    if (json === undefined) throw new TypeError('a value of the state must be a JSON value');
    return this.useState({ key, value: json, ...(expected !== undefined && { expected }) });
  }

  private async useState<T>(asked: StateRequest): Promise<T> {
    const { key, expected = 0 } = asked;
    if (typeof key !== 'string' || key === '' || key.length > STEP_LIMITS.stateKey)
      throw new TypeError(`a key of the state must be a text of 1 to ${STEP_LIMITS.stateKey} characters`);
    if (!Number.isSafeInteger(expected) || expected < 0)
      throw new TypeError('a version of the state must be a number from 0');
    const use = async (step: HostedStep): Promise<T> => {
      const { result } = await this.begin(step, { request: JSON.stringify(asked) });
      return valueOf(result) as T;
    };
    return this.tracked('state', `${asked.value === undefined ? 'get' : 'set'} ${key}`, use);
  }

  private async until(time: number | undefined, staysHere = false): Promise<void> {
    const ms = time === undefined ? 0 : time - Date.now();
    if (ms > IN_PLACE_MS && !staysHere) await this.park({ until: time ?? 0 });
    if (ms > 0) await delay(ms, undefined, { signal: this.stopping.signal });
  }

  /** Waits that were lost in a race end with the execution. */
  private async continueAs(state: unknown): Promise<never> {
    this.stopping.signal.throwIfAborted();
    // The code that has failed is never continued.
    if (this.mismatch !== undefined || this.hasFailed) return this.stopped;
    const [missing] = this.uncalled.values();
    if (missing)
      return this.leave(`continueAs() comes before ${shown(missing)}, which an earlier attempt began`);
    if (this.isReplay) {
      this.pending += 1;
      return this.park({});
    }
    if (this.pending !== this.parked.length) {
      throw new Error('continueAs() must not be called while a step runs: await all steps before it');
    }
    const json = jsonOf(state, 'The state for continueAs()') ?? 'null';
    this.isContinuing = true;
    this.channel.park({ continueAs: json });
    return this.stopped;
  }

  /** Waits for something that only another attempt will see. */
  private park(what: StepWait): Promise<never> {
    this.parked.push(what);
    this.leaveSoon();
    return this.stopped;
  }

  /**
   * Leaves the turn at once. Steps that run are aborted, and nothing more is stored. The step neither resolves nor rejects: an author
   * who catches all errors would continue with code that does not fit.
   */
  private leave(mismatch: string): Promise<never> {
    this.mismatch = mismatch;
    this.channel.leave();
    this.leaving.abort(new Error('The code of the agent has changed'));
    return this.stopped;
  }

  /** Leaves the turn as soon as all steps under way wait. */
  private leaveSoon(): void {
    if (this.parked.length === 0) return;
    setImmediate(() => {
      if (
        this.isContinuing ||
        this.leaving.signal.aborted ||
        this.pending !== this.parked.length ||
        this.deliveries.length > 0
      )
        return;
      const input = nextQuestion(this.parked);
      const patient = input ? Date.now() + ASKING_MS : 0;
      const times = this.parked.flatMap(({ until, isOfServer }) =>
        until === undefined ? [] : [isOfServer ? Math.max(until, patient) : until],
      );
      const wakeInMs = times.length > 0 ? Math.max(0, Math.min(...times) - Date.now()) : undefined;
      this.channel.park({ ...(input && { input }), ...(wakeInMs !== undefined && { wakeInMs }) });
    });
  }

  /** Resolves when the worker has stored it. Rejects with a StepError if the worker says that the step has failed. */
  private async stored(message: StepMessage): Promise<Stored> {
    this.stopping.signal.throwIfAborted();
    if (this.mismatch !== undefined) return this.stopped;
    if (this.isReplay) return this.park({});
    const replied = new Promise<StepReply>((resolve) => this.replies.set(message.id, resolve));
    this.channel.say(message);
    const reply = await Promise.race([replied, this.stopped]);
    if (!('error' in reply)) return reply;
    throw new StepError(message.op === 'begin' ? message.name : '', reply.error);
  }
}

/** An unhandled rejection, such as of the loser of a race, must not count as an error of the process. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

type UndoOptions = Partial<Pick<Compensable, 'compensate' | 'backoff'>> &
  Pick<StepOptions, 'verify' | 'timeout'>;

type Stored = Exclude<StepReply, { error: StepFailure }>;

/**
 * The question that the task asks: the first one that was not asked. Otherwise the last question, because the code may no longer
 * need the earlier ones.
 */
function nextQuestion(waits: readonly StepWait[]): Parked['input'] {
  const questions = waits.filter(({ input }) => input);
  const latest = questions.toSorted((a, b) => (b.asked ?? 0) - (a.asked ?? 0))[0];
  return (questions.find(({ asked }) => asked === undefined) ?? latest)?.input;
}

const keyOf = ({ name, nth }: Pick<RecordedStep, 'name' | 'nth'>): string => `${nth} ${name}`;
const shown = ({ name, nth }: Pick<RecordedStep, 'name' | 'nth'>): string =>
  nth === 1 ? `"${name}"` : `"${name}" (number ${nth} of that name)`;
function assertName(name: string): void {
  if (typeof name !== 'string' || name.trim() === '' || name.length > STEP_LIMITS.name) {
    throw new TypeError(`the name of a step must be a text of 1 to ${STEP_LIMITS.name} characters`);
  }
  if (hasControls(name)) {
    throw new TypeError(
      'the name of a step must not contain control characters, such as line breaks: remove them',
    );
  }
}

// oxlint-disable-next-line no-control-regex -- names are shown in terminals
const hasControls = (text: string): boolean => /[\u0000-\u001f\u007f]/.test(text);
