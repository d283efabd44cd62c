import type { Part } from '@a2a-js/sdk';
import { setTimeout as delay } from 'node:timers/promises';
import type { ModelCallAnswer, ModelPiece } from '../model-protocol.js';
import type { TurnRequest } from '../protocol.js';
import { type RecordedStep, type StateRequest, STEP_LIMITS, type StepKind } from '../step-protocol.js';
import { Compensation, type UndoOptions } from './compensation.js';
import { conversationBefore } from './conversation-before.js';
import { Deliveries } from './deliveries.js';
import { FunctionSteps } from './function-steps.js';
import { type CallModel, HostedModel } from './hosted-model.js';
import { type CallTool, HostedTools } from './hosted-tools.js';
import { INPUT_TIMEOUT, InputTimeout } from './input-timeout.js';
import { assertName, type HostedStep, RecordedSteps, stepLabel } from './recorded-steps.js';
import { StepError } from './step-error.js';
import { IN_PLACE_MS, type StepChannel, StepLink } from './step-link.js';
import { StepSlots } from './step-slots.js';
import { answerOf, jsonOf, milliseconds, partsOf, valueOf } from './step-values.js';
import type {
  AgentReply,
  CallOptions,
  CodeTools,
  CodeToolSettings,
  DurableSteps,
  Duration,
  InputAnswer,
  InputOptions,
  ModelTool,
  StateOutcome,
  ToolAnswer,
} from './steps.js';

/**
 * The steps of one call of `execute`. Steps that earlier attempts have finished get their stored results, in the order in
 * which they had finished. All others run, and the worker stores how they end.
 */
export class HostedSteps {
  /** The functions for the author. They need no `this`. */
  readonly api: DurableSteps;
  readonly link: StepLink;
  readonly compensation: Compensation;
  private readonly recorded: RecordedSteps;
  private readonly deliveries = new Deliveries();
  private readonly functions: FunctionSteps;
  /** The answer that the code got for each patch. It gets the same answer until the execution ends. */
  private readonly patches = new Map<string, Promise<boolean>>();
  /** Listeners of the model calls that are under way, by step. */
  private readonly pieceListeners = new Map<number, (piece: ModelPiece) => void>();

  /** @param request of the turn: `compensating` is set if an earlier attempt has thrown */
  constructor(recorded: readonly RecordedStep[], channel: StepChannel, request: Partial<TurnRequest> = {}) {
    const { compensating, lastState } = request;
    const { deliveries } = this;
    this.recorded = new RecordedSteps(recorded);
    this.link = new StepLink(channel, deliveries);
    const slots = new StepSlots(deliveries);
    this.functions = new FunctionSteps(this.link, slots);
    this.compensation = new Compensation(
      this.link,
      this.functions,
      slots,
      deliveries,
      (name, undo, options) =>
        this.tracked('run', name, (own) => this.functions.run(own, undo, options), undefined, true),
      compensating,
    );
    this.api = {
      step: (name, run, options) =>
        this.tracked('run', name, (step) => this.functions.run(step, run, options), options as UndoOptions),
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
        this.tracked('run', 'history', (step) => this.functions.run(step, () => conversationBefore(request))),
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
    return this.compensation.hasBegun || this.recorded.missing !== undefined || !this.deliveries.isEmpty;
  }

  /** The code has ended. That is a mismatch if earlier attempts began further steps. */
  onEnd(): void {
    const { link, recorded } = this;
    if (link.hasFailed || link.stopSignal.aborted || !recorded.missing) return;
    link.mismatch ??= `The code ends, but an earlier attempt began ${stepLabel(recorded.missing)} here`;
  }

  onPiece(id: number, piece: ModelPiece): void {
    this.pieceListeners.get(id)?.(piece);
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
      const { link, recorded, compensation } = this;
      link.stopSignal.throwIfAborted();
      const { compensate, backoff } = undo ?? {};
      if (compensate !== undefined && typeof (compensate as unknown) !== 'function')
        throw new TypeError(`compensate of step "${name}" must be a function`);
      const record = recorded.next(name);
      // The code that has failed is never continued.
      const isUnknown = compensate !== undefined && compensation.isUnknown(record);
      if (link.hasFailed && !undoes && !isUnknown && !record?.ended) return await link.stopped;
      if (link.mismatch !== undefined) return await link.stopped;
      const step = recorded.enter(kind, name, { undoes, alone: link.pending === 0 });
      if (typeof step === 'string') return await link.leave(step);
      step.compensates = compensate !== undefined;
      link.pending += 1;
      if (compensate) compensation.underWay += 1;
      try {
        if (link.isReplay && !step.record.ended) return await link.park({});
        if (isUnknown) await compensation.verify(step, undo);
        const value = step.record.ended ? ((await this.replayed(step.record)) as T) : await work(step);
        if (compensate) {
          const result = jsonOf(value, 'The result of a step');
          compensation.noteFinished({ id: step.record.id, name, result, compensate, backoff });
        }
        return value;
      } finally {
        link.pending -= 1;
        if (compensate) compensation.underWay -= 1;
        link.leaveSoon();
      }
    };
    return handled(track());
  }

  private patched(id: string): Promise<boolean> {
    const known = this.patches.get(id);
    if (known) return known;
    const take = async (): Promise<boolean> => {
      this.link.stopSignal.throwIfAborted();
      if (this.link.mismatch !== undefined) return this.link.stopped;
      assertName(id);
      const isPatched = this.recorded.patch(id, this.link.pending === 0);
      this.link.pending += 1;
      try {
        return isPatched && (await this.storePatch(isPatched));
      } finally {
        this.link.pending -= 1;
        this.link.leaveSoon();
      }
    };
    const answer = take();
    answer.catch(() => undefined);
    this.patches.set(id, answer);
    return answer;
  }

  private async storePatch(step: HostedStep): Promise<true> {
    if (!step.isKnown) await this.link.begin(step);
    if (!step.record.ended) await this.link.stored({ op: 'end', id: step.record.id });
    return true;
  }

  /** The stored end of a step. Steps called at the same time settle in the order in which they had ended. */
  private async replayed({ name, kind, ended }: RecordedStep): Promise<unknown> {
    const { order = 0, result, error } = ended ?? {};
    await this.deliveries.turnOf(order);
    if (error && kind === 'input' && error.code === INPUT_TIMEOUT) throw new InputTimeout(name, error);
    if (error) throw new StepError(name, error);
    return kind === 'input' ? answerOf(valueOf(result)) : valueOf(result);
  }

  private async sleep(step: HostedStep, duration: Duration | Date): Promise<void> {
    const ms =
      duration instanceof Date ? Math.max(0, duration.getTime() - Date.now()) : milliseconds(duration);
    if (!(ms <= STEP_LIMITS.sleepMs)) throw new TypeError('a sleep ends within a year, at a valid time');
    const until = step.isKnown ? step.record.until : (await this.link.begin(step, { ms })).until;
    await this.link.until(until);
    await this.link.stored({ op: 'end', id: step.record.id });
  }

  private async ask(
    step: HostedStep,
    question: string | Part[],
    { timeout }: InputOptions = {},
  ): Promise<InputAnswer> {
    const parts = typeof question === 'string' ? [{ text: question }] : partsOf(question);
    const ms = timeout === undefined ? undefined : milliseconds(timeout);
    const { id, name, asked } = step.record;
    const begun = step.isKnown ? step.record : await this.link.begin(step, ms === undefined ? {} : { ms });
    const { until } = begun;
    const left = until === undefined ? Infinity : until - Date.now();
    // The clock of this machine may be a little late. To ask again would be worse.
    if (!step.isKnown || left > IN_PLACE_MS) {
      return this.link.park({ input: { id, question: parts }, asked, ...(until !== undefined && { until }) });
    }
    if (left > 0) await delay(left, undefined, { signal: this.link.stopSignal });
    const error = { name: 'InputTimeout', message: 'no answer came in time', code: INPUT_TIMEOUT };
    await this.link.stored({ op: 'fail', id, error });
    throw new InputTimeout(name, error);
  }

  private async call(
    step: HostedStep,
    agent: string,
    message: string,
    { data, taskId }: CallOptions = {},
  ): Promise<AgentReply> {
    const request = jsonOf({ message, data, taskId }, 'The request of a step');
    const reply = await this.link.begin(step, { agent, ...(request !== undefined && { request }) });
    if (reply.isWaiting) return this.link.park({});
    return valueOf(reply.result) as AgentReply;
  }

  private readonly callModel: CallModel = async (name, asked, onPiece) => {
    const request = jsonOf(asked, 'The request to a model', STEP_LIMITS.modelRequestBytes);
    const work = async (step: HostedStep): Promise<ModelCallAnswer> => {
      const { id } = step.record;
      if (onPiece) this.pieceListeners.set(id, onPiece);
      const more = { ...(request !== undefined && { request }), ...(onPiece && { streams: true as const }) };
      const { result, failed, asks } = await this.link
        .begin(step, more)
        .finally(() => this.pieceListeners.delete(id));
      if (asks) return this.askPerson(step);
      if (failed) {
        await this.link.stored({ op: 'fail', id, error: failed });
        throw new StepError(name, failed);
      }
      const answer = valueOf(result) as ModelCallAnswer;
      const { wrong } = answer;
      // The worker has the answer already.
      await this.link.stored({ op: 'end', id, ...(wrong && { result: JSON.stringify({ wrong }) }) });
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
      const { result, failed, asks, until } = await this.link.begin(step, {
        ...(request !== undefined && { request }),
      });
      if (until !== undefined) return this.link.park({ until, isOfServer: true });
      if (asks) return this.askPerson(step);
      if (failed) {
        await this.link.stored({ op: 'fail', id, error: failed });
        throw new StepError(name, failed);
      }
      // The worker has the result of a call that was made. It does not have others.
      await this.link.stored({ op: 'end', id, ...(result !== undefined && { result }) });
      return valueOf(result) as T;
    };
    return this.tracked('tool', name, use);
  }

  /** A person is asked before a model or tool call continues. The worker has the question. */
  private async askPerson({ record: { id, asked } }: HostedStep): Promise<never> {
    await this.link.stored({ op: 'ask', id });
    return this.link.park({ input: { id, question: [] }, asked });
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
      const { result } = await this.link.begin(step, { request: JSON.stringify(asked) });
      return valueOf(result) as T;
    };
    return this.tracked('state', `${asked.value === undefined ? 'get' : 'set'} ${key}`, use);
  }

  /** Waits that were lost in a race end with the execution. */
  private async continueAs(state: unknown): Promise<never> {
    this.link.stopSignal.throwIfAborted();
    // The code that has failed is never continued.
    if (this.link.mismatch !== undefined || this.link.hasFailed) return this.link.stopped;
    const { missing } = this.recorded;
    if (missing)
      return this.link.leave(
        `continueAs() comes before ${stepLabel(missing)}, which an earlier attempt began`,
      );
    if (this.link.isReplay) {
      this.link.pending += 1;
      return this.link.park({});
    }
    if (!this.link.allWait) {
      throw new Error('continueAs() must not be called while a step runs: await all steps before it');
    }
    const json = jsonOf(state, 'The state for continueAs()') ?? 'null';
    return this.link.continueAs(json);
  }
}

/** An unhandled rejection, such as of the loser of a race, must not count as an error of the process. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
