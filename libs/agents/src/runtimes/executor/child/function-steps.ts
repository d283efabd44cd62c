import { type OutcomeDecision, STEP_LIMITS } from '../step-protocol.js';
import type { HostedStep } from './recorded-steps.js';
import { StepError } from './step-error.js';
import { failureOf } from './step-failures.js';
import type { Stored, StepLink } from './step-link.js';
import type { StepSlots } from './step-slots.js';
import { jsonOf, milliseconds, valueOf } from './step-values.js';
import type { Jsonify, StepCall, StepOptions, Verified } from './steps.js';
import { UnknownOutcome } from './unknown-outcome.js';
import { withinTurn } from './within-turn.js';

/** Three tries within some three seconds pass over a short fault. An author sets `attempts` and `backoff` for others. */
export const DEFAULT_ATTEMPTS = 3;
export const DEFAULT_BACKOFF_MS = 1_000;
/** The pause doubles with each try, up to an hour. */
const MAX_BACKOFF_MS = 3_600_000;

type OnUnknown = NonNullable<StepOptions['onUnknown']>;
const ON_UNKNOWN: readonly OnUnknown[] = ['repeat', 'ask', 'fail'];

/** The end of a try. `json`: it is stored. `isFinal`: no further try. */
type TryOutcome =
  | { json: string | undefined }
  | { thrown: unknown; isFinal: boolean; decision?: OutcomeDecision };

/** The steps that call a function of the author: `step`, with its tries, and the checks of unknown outcomes. */
export class FunctionSteps {
  constructor(
    private readonly link: StepLink,
    private readonly slots: StepSlots,
  ) {}

  /** Calls the function of a step until it ends, or its attempts are used up. */
  async run<T>(
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
    let begun = record.attempts === 0 ? this.link.begin(step) : undefined;
    for (;;) {
      let outcome: TryOutcome | undefined;
      if (!begun) {
        await this.link.until(record.until, step.undoes);
        outcome = await this.earlierOutcome(step, verify, onUnknown, timeoutMs);
      }
      outcome ??= await this.try(step, (begun ??= this.beginAgain(step, verify, onUnknown)), run, timeoutMs);
      begun = undefined;
      if ('json' in outcome) return valueOf(outcome.json) as Jsonify<T>;
      const isFinal = outcome.isFinal || record.failures + 1 >= attempts || !retryIf(outcome.thrown);
      const error = failureOf(outcome.thrown);
      const retryMs = Math.min(backoffMs * 2 ** record.failures, MAX_BACKOFF_MS);
      const { decision } = outcome;
      const { until } = await this.link.stored({
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
    await this.slots.take();
    try {
      const { key = '', attempts: attempt } = step.record;
      let value: T;
      try {
        value = await withinTurn(timeoutMs, this.link.leaveSignal, async (signal) =>
          run({ attempt, key, signal }),
        );
      } catch (thrown) {
        this.link.stopSignal.throwIfAborted();
        if (this.link.mismatch !== undefined) return await this.link.stopped;
        return { thrown, isFinal: false };
      }
      return await this.end(step, value);
    } finally {
      this.slots.free();
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
    await this.link.stored({
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
      await this.link.stored({ op: 'ask', id });
      return this.link.park({ input: { id, question: [] }, asked: step.record.asked });
    }
    return answer.done ? this.end(step, valueOf(answer.result), 'asked') : undefined;
  }

  /** The result of `verify` about an earlier try. Undefined: the try had no effect. */
  async verified(
    step: HostedStep,
    verify: NonNullable<StepOptions['verify']>,
    timeoutMs: number | undefined,
  ): Promise<TryOutcome | undefined> {
    await this.slots.take();
    try {
      const { name, key = '' } = step.record;
      let found: Verified | undefined;
      try {
        found = await withinTurn(timeoutMs, this.link.stopSignal, async (signal) => verify({ key, signal }));
      } catch (thrown) {
        this.link.stopSignal.throwIfAborted();
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
      this.slots.free();
    }
  }

  private beginAgain(step: HostedStep, verify: StepOptions['verify'], onUnknown: OnUnknown): Promise<Stored> {
    const decision = verify ? 'verified' : onUnknown === 'ask' ? 'asked' : 'repeated';
    return this.link.begin(step, step.record.isUnknown ? { decision } : {});
  }
}
