import { setTimeout as delay } from 'node:timers/promises';
import { cut } from '../protocol.js';
import type { Compensating, RecordedStep } from '../step-protocol.js';
import type { Deliveries } from './deliveries.js';
import { DEFAULT_ATTEMPTS, DEFAULT_BACKOFF_MS, type FunctionSteps } from './function-steps.js';
import type { HostedStep } from './recorded-steps.js';
import { failureOf, restoredError, withNotes } from './step-failures.js';
import type { StepLink } from './step-link.js';
import type { StepSlots } from './step-slots.js';
import { milliseconds, valueOf } from './step-values.js';
import type { Duration, StepCall, StepOptions } from './steps.js';

/** A compensation that takes longer has failed. */
const COMPENSATION_MS = 30_000;
/** Time for steps beside the one that has failed. */
const OTHERS_MS = 10_000;
/** No event reports their end. A turn that fails ends this much later at most. */
const POLL_MS = 20;
/** Characters of a step's name in that of its compensation. */
const MAX_UNDONE_NAME = 150;

/** The outcome of a step that a cancel has interrupted: no effect, or unknown. */
type UndoVerification = 'absent' | 'unclear' | { problem: string };

/** A finished step that can be undone. */
interface Compensable {
  id: number;
  name: string;
  /** JSON of its result. */
  result: string | undefined;
  compensate: (result: unknown, call: StepCall) => unknown;
  backoff: Duration | undefined;
}

/** The options of a step that are about its compensation. */
export type UndoOptions = Partial<Pick<Compensable, 'compensate' | 'backoff'>> &
  Pick<StepOptions, 'verify' | 'timeout'>;

type Undo = (
  name: string,
  undo: (call: StepCall) => Promise<void>,
  options: StepOptions<never>,
) => Promise<void>;

/** Undoes the finished steps of code that has thrown, or of a canceled task. */
export class Compensation {
  /** In the order in which they have ended. */
  private readonly finished: Compensable[] = [];
  /** Steps under way that have a `compensate`. */
  underWay = 0;
  /** Resolves when an attempt that only compensates has all the steps to do so. In other attempts it stays open. */
  readonly collected: Promise<void>;
  /** Steps of a canceled task that are not known to have ended. */
  private readonly verified = new Map<number, UndoVerification>();
  private onCollected: () => void = () => undefined;

  /**
   * @param undo runs a compensation as a step of its own
   * @param compensating set if an earlier attempt has thrown
   */
  constructor(
    private readonly link: StepLink,
    private readonly functions: FunctionSteps,
    private readonly slots: StepSlots,
    private readonly deliveries: Deliveries,
    private readonly undo: Undo,
    private compensating: Compensating | undefined,
  ) {
    this.collected = new Promise((resolve) => (this.onCollected = resolve));
    link.hasFailed = compensating !== undefined;
  }

  get hasBegun(): boolean {
    return this.compensating !== undefined;
  }

  /** A step that can be undone has ended. */
  noteFinished(step: Compensable): void {
    this.finished.push(step);
    this.noteCollected();
  }

  private noteCollected(): void {
    if (!this.compensating) return;
    const { steps, unknown = [] } = this.compensating;
    const known = new Set([...this.finished.map(({ id }) => id), ...this.verified.keys()]);
    if ([...steps, ...unknown].every((id) => known.has(id))) this.onCollected();
  }

  /** Whether a step was under way, or between two tries, when its task was canceled. */
  isUnknown(record: RecordedStep | undefined): boolean {
    return record !== undefined && !record.ended && this.compensating?.unknown?.includes(record.id) === true;
  }

  /**
   * The task was canceled before the step had ended. Checks whether its effect is there. If it is, the step has ended now, and is undone.
   * Otherwise this never resolves: the code goes no further.
   */
  async verify(step: HostedStep, { verify, timeout }: UndoOptions = {}): Promise<void> {
    const { record } = step;
    const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout);
    let found: UndoVerification = record.isUnknown ? 'unclear' : 'absent';
    for (let failures = 0; verify; failures++) {
      const outcome = await this.functions.verified(step, verify, timeoutMs);
      if (outcome && 'json' in outcome) {
        const { json: result } = outcome;
        record.ended = { order: Infinity, ...(result !== undefined && { result }) };
        return;
      }
      found = outcome ? { problem: failureOf(outcome.thrown).message } : 'absent';
      if (!outcome || failures + 1 >= DEFAULT_ATTEMPTS) break;
      await delay(DEFAULT_BACKOFF_MS, undefined, { signal: this.link.stopSignal });
    }
    this.verified.set(record.id, found);
    this.noteCollected();
    await this.link.stopped;
  }

  /**
   * The code has thrown: undoes its finished steps, the last one first. Each is a step of its own, so a crash continues with the next
   * attempt. Rejects if the journal has no error of that attempt.
   * @returns the error with which the turn fails: of the attempt that has thrown first. Undefined: the task was canceled, and its steps are
   * undone now
   */
  async compensate(thrown: unknown): Promise<{ error: unknown } | undefined> {
    if (this.link.mismatch !== undefined || this.link.isReplay || this.link.stopSignal.aborted)
      return { error: thrown };
    this.link.hasFailed = true;
    const first = this.compensating ? restoredError(this.compensating.error) : thrown;
    try {
      await this.othersEnd();
      if (!this.compensating) {
        if (this.finished.length === 0) return { error: thrown };
        const steps = this.finished.map(({ id }) => id).toReversed();
        const compensating = { error: failureOf(thrown), steps };
        await this.link.stored({ op: 'compensate', id: 0, ...compensating });
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
   * Stores which steps of a canceled task have had their effect, before anything is undone.
   * @returns a sentence for each step whose outcome stays unknown because its `verify` has failed
   */
  private async noteLooks({ unknown = [], ...known }: Compensating): Promise<string[]> {
    const undone = new Set(this.finished.map(({ id }) => id));
    const found = unknown.filter((id) => undone.has(id)).toReversed();
    const open = unknown.filter((id) => !undone.has(id) && this.verified.get(id) !== 'absent');
    if (unknown.length > 0 && (!known.hasLooked || open.length < unknown.length)) {
      const steps = known.hasLooked ? [...known.steps, ...found] : [...found, ...known.steps];
      this.compensating = { ...known, steps, unknown: open };
      await this.link.stored({ op: 'compensate', id: 0, ...this.compensating });
    }
    return open.flatMap((id) => {
      const verified = this.verified.get(id);
      if (verified === 'unclear') return [];
      const why = typeof verified === 'object' ? verified.problem : 'the code no longer calls it';
      return [`it is not known whether step number ${id} was carried out: ${why}`];
    });
  }

  /** A step beside the one that has failed may still end. Waits for those that would be compensated, for a while. */
  private async othersEnd(): Promise<void> {
    const mayEnd = (): boolean => this.underWay > 0 && (this.slots.isBusy || this.deliveries.isBusy);
    for (const end = Date.now() + OTHERS_MS; mayEnd() && Date.now() < end;) {
      await delay(POLL_MS, undefined, { signal: this.link.stopSignal });
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
      // Compensations run one after the other, so a pause of one delays the others.
      const options = {
        timeout: COMPENSATION_MS,
        backoff: Math.min(milliseconds(backoff), DEFAULT_BACKOFF_MS),
      };
      const undone = this.undo(`compensate ${cut(name, MAX_UNDONE_NAME)}`, undo, options);
      await undone.catch((error: unknown) => {
        this.link.stopSignal.throwIfAborted();
        problems.push(error instanceof Error ? error.message : String(error));
      });
    }
    return problems;
  }
}
