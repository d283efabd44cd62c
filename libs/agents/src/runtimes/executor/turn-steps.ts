import { clock } from '@baton/telemetry';
import {
  detailsFromJson,
  type DetailsJson,
  detailsToJson,
  Message,
  type Part,
  TaskState,
  textPart,
} from '@baton/a2a';
import { type ChildTasks } from '../../child-tasks.js';
import { ChildRefusal } from '../../child-refusal.js';
import { type AgentList } from '../../agent-list.js';
import {
  type AgentOutput,
  artifactChunk,
  inputRequired,
  type JournalEntry,
  historyBefore,
  status,
  type Turn,
} from '../../agent-runtime.js';
import { Suspension } from '../../suspension.js';
import { replyOf } from '../llm/tools/callee-tools.js';
import { effectKey } from '../../effect-key.js';
import { taskOfEffects } from '../../task-origin.js';
import type { FailedCall, ModelStep } from '../llm/llm-entry.js';
import { add, type ModelUsage, NO_USAGE } from '../llm/model-usage.js';
import type { ModelPiece } from './model-protocol.js';
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type Approver,
  approverOf,
  type Decision,
  isSentByAgent,
} from '../../approvals.js';
import type { SignInOffer } from '../../access-tokens.js';
import type { SignInNeeded } from '../../sign-in-needed.js';
import { needsSignIn, notSignedIn, signInParts } from '../../sign-in-request.js';
import type { RemoteCall } from '../llm/tools/remote-call.js';
import { progressArtifact, progressSaid } from '../llm/turn-artifacts.js';
import { approvalRequest, readAnswer } from '../llm/approval/approval.js';
import { allowedMicros, capInputProblem, capQuestion } from '../llm/approval/cap-question.js';
import type { CapQuestion } from '../../cap-reached.js';
import { type MadeCall, resultOf, type StoredRemoteCall, type TurnTools } from './turn-tools.js';
import { modelAnswer, type TurnModels } from './turn-models.js';
import { cut } from './protocol.js';
import { AgentError } from './agent-error.js';
import {
  type Parked,
  type RecordedStep,
  STEP_KINDS,
  errorExtras,
  STEP_LIMITS,
  type StepFailure,
  type StepKind,
  type StateRequest,
  type StepMessage,
  type StepReply,
  type Compensating,
  OUTCOME_DECISIONS,
  type OutcomeAnswer,
  type OutcomeDecision,
} from './step-protocol.js';
import { outcomeAnswer, outcomeQuestion } from './outcome-question.js';

/** The parts of the platform that steps need to call other agents and models. */
export interface TurnStepPorts {
  agents: Pick<AgentList, 'find'>;
  children: Pick<ChildTasks, 'call'>;
  /** Maximum depth of a child below the first task, and maximum number of tasks below it. */
  limits: { depth: number; tasks: number };
  models: Pick<TurnModels, 'allow' | 'call' | 'check'>;
  tools: Pick<TurnTools, 'use' | 'pollTask' | 'close'>;
}

/** The members of every entry of the journal. */
interface EntryHead {
  /**
   * Executions of a task count from 1. An execution is one call of `execute`, with all its later attempts, and with the
   * turns that answer its `waitForInput`. The next one begins with a message that answers nothing, or with `continueAs`.
   */
  execution: number;
  id: number;
  /** ISO 8601 */
  at: string;
  /** Head of the log: all that the code had published before is at or below. -1 = some of it may have been held back. */
  head: number;
}

interface Begun extends EntryHead {
  event: 'begun';
  name: string;
  nth: number;
  kind: StepKind;
  alone: boolean;
  /** For a sleep, and for a question with a timeout: its end, in ms since 1970. */
  until?: number;
  /** For a call of an agent: its slug. */
  agent?: string;
  /** For a question: the index of the execution's first message in the history of the task. */
  start?: number;
  /** For a question: `metadata` and `configuration` of the request that began the execution. */
  details?: DetailsJson;
  /** What decided to repeat the last try, whose outcome was unknown. */
  decision?: OutcomeDecision;
  /** It can be undone. Releases up to 0.2 do not write it. */
  compensates?: true;
}

interface Failed extends EntryHead {
  event: 'failed';
  error: StepFailure;
  /** `verified`: the step has not failed, but `verify` of its unknown outcome has. */
  decision?: OutcomeDecision;
  /** When it is tried again, in ms since 1970. */
  until: number;
}

interface Ended extends EntryHead {
  event: 'ended';
  /** JSON */
  result?: string;
  error?: StepFailure;
  /** For a question: the index of the answer in the history of the task. */
  answer?: number;
  /** For a question: `metadata` and `configuration` of the answer's request. Journals of releases up to 0.2 do not have it. */
  details?: DetailsJson;
  /** What decided that the step has ended, as the outcome of a try was unknown. */
  decision?: OutcomeDecision;
}

/** A person is asked about the unknown outcome of a step. Releases up to 0.2 skip this entry and the next one. */
interface OutcomeAsked extends EntryHead, Pick<Begun, 'start' | 'details'> {
  event: 'asked';
  /** ISO 8601. For a call of a tool: from then on it counts as refused. */
  expiresAt?: string;
  /** For a call of a model: the cap that has no room. */
  cap?: CapQuestion;
  /** The server of a tool asks: ids of its questions, and of those that ask for data. */
  questions?: string[];
  forms?: string[];
  /** The server of a tool wants the caller to sign in. No message answers that. */
  signIn?: true;
}

interface OutcomeAnswered extends EntryHead {
  event: 'answered';
  /** The content of the caller's message. */
  answer: OutcomeAnswer;
  /** The decision about a call of a model or a tool. Unset: the message has none. */
  decision?: Decision;
  /** About the questions of the server of a tool. */
  decisions?: Decision[];
}

/** A call of a tool that must not be repeated without a person's approval is sent next. */
interface ToolSent extends EntryHead {
  event: 'sent';
}

/** The server has refused it, because the caller must sign in first. */
interface ToolUnsent extends EntryHead {
  event: 'unsent';
}

/**
 * The server of a tool goes on with a call by itself, or asks: as an llm agent has it in its journal. The last entry of a call counts.
 * Releases up to 0.2 skip it.
 */
interface ToolRemote extends EntryHead, StoredRemoteCall {
  event: 'remote';
  kind: 'remote';
  call: string;
}

/**
 * The code has thrown, or the task continues a canceled task. Its id is 0: it is about no step. Compensations are steps of their
 * own. The last such entry counts.
 */
interface CompensationBegun extends EntryHead, Compensating {
  event: 'compensating';
}

/**
 * A turn has ended with a question that the task may go on without, or that is one of several. An answer answers the last one of them.
 * Releases up to 0.2 skip this entry.
 */
interface QuestionPosed extends EntryHead {
  event: 'posed';
}

/** The first entry of an execution that began with `continueAs`. All entries before it were deleted. It is about no step: its id is 0. */
interface Continued extends EntryHead {
  event: 'continued';
  /** JSON */
  state: string;
  /** The index of the execution's first message in the history of the task. */
  start: number;
  /** `metadata` and `configuration` of the request that began it. */
  details?: DetailsJson;
}

/**
 * A call of a model was made: an answer or a failure, as an llm agent has it in its journal, so that both are shown in the same way. The
 * step has not ended yet. An answer is not asked for again.
 */
type ModelCalled = EntryHead & { event: 'called' } & (ModelStep | FailedCall | MadeCall);

/** An entry in the journal of an executor's task. Only the executor runtime writes into it. */
type StepEntry =
  | Begun
  | Failed
  | Ended
  | OutcomeAsked
  | OutcomeAnswered
  | CompensationBegun
  | QuestionPosed
  | ModelCalled
  | ToolSent
  | ToolUnsent
  | ToolRemote
  | Continued;

/** Characters of the names of steps in a message. */
const MAX_NAMES = 2_000;

/** The reply to a message about a step, or one that comes while other steps go on. */
export type TakenReply = StepReply | { later: Promise<StepReply> };

interface OpenStep extends RecordedStep {
  /** It can be undone. */
  compensates?: true;
  /** It undoes another step. */
  undoes?: true;
  /** The answer of a model. */
  called?: ModelStep | MadeCall;
  /** For a call of a tool: it was sent, and what a person has decided since. */
  isSent?: boolean;
  decision?: Decision;
  expiresAt?: string;
  /** The input to which a person has changed it before it was sent. */
  input?: unknown;
  /** The state of the call at its server, and a person's answer to the last questions of the server. */
  remote?: StoredRemoteCall;
  answered?: ApprovalAnswer;
  /** The last question: questions of the server, or a sign-in. */
  asking?: Pick<OutcomeAsked, 'questions' | 'forms' | 'signIn'>;
  /** For a call of a model: the cap that a person was asked about last, and the number of such questions. */
  cap?: CapQuestion;
  capsAsked?: number;
  /** The next question to a person, and why the last answer was invalid. */
  question?:
    | { approvals: readonly ApprovalRequest[]; problem?: string }
    | { cap: CapQuestion; problem?: string }
    | { signIn: { reason: string; offer: SignInOffer } };
  problem?: string;
  agent?: string;
  start?: number;
  details?: DetailsJson;
}

/**
 * The worker's side of the durable steps of a turn: reads what earlier attempts have stored, and stores what the process
 * reports. Every entry is fenced by the attempt, and is written when all that was published before it is in the log. So
 * what the code publishes while it replays is in the log already.
 */
export class TurnSteps {
  private readonly steps: OpenStep[] = [];
  private ends = 0;
  /** Bytes and steps of the journal. */
  private bytes = 0;
  private total = 0;
  /** Head of the log at the last entry of this execution. */
  private head: number | undefined;
  /** The children that steps of this attempt wait for, by step. */
  private readonly waiting = new Map<number, string>();
  private execution = 1;
  /** Set if this execution began with `continueAs`. */
  private continued: Continued | undefined;
  /** Questions of this execution with which a turn has ended, and those of this run, as far as they have an entry. */
  private posed = 0;
  private posedByRun = 0;
  /** Set once the code of the execution has thrown with steps to compensate. */
  compensating: Compensating | undefined;
  /** Whether the log has nothing beyond the last entry. Then artifacts go on where they were. */
  private isExact = false;
  /** Position of the last entry in the journal. */
  private position = 0;
  /** Tokens of the calls of models: of this run, and of the task as far as the journal goes back. */
  private spent = { run: NO_USAGE, task: NO_USAGE };
  /** The model that was called last. */
  private lastModel: string | undefined;
  private readonly closing = new AbortController();

  private constructor(
    private readonly turn: Turn,
    private readonly ports: TurnStepPorts | undefined,
  ) {}

  /** Reads the steps of a turn. The first attempt of a task has none, and reads nothing. */
  static async open(turn: Turn, ports?: TurnStepPorts): Promise<TurnSteps> {
    const steps = new TurnSteps(turn, ports);
    if (turn.attempt === 1 && historyBefore(turn).length === 0 && !turn.origin) return steps;
    const entries = await turn.journal.read();
    steps.position = entries.at(-1)?.position ?? (turn.origin ? 1 : 0);
    await steps.restore(entries.filter(isStepEntry));
    return steps;
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

  /** Tokens of the calls of models, and the last model. Undefined: none was called. */
  get usage(): (ModelUsage & { model: string }) | undefined {
    return this.lastModel === undefined ? undefined : { ...this.spent.task, model: this.lastModel };
  }

  /** The turn is over: aborts calls of models that no step waits for. */
  close(): void {
    this.closing.abort('closed');
    void this.ports?.tools.close();
  }

  /**
   * Stores the report of a step. Resolves when it is durable. Throws AgentError for a report that the library never sends.
   * @param on `piece` is called with the text of a model as it arrives, if the process wants it, and `say` with the progress of a
   * call of a tool
   */
  async take(message: StepMessage, signal: AbortSignal, on: StepListeners = {}): Promise<TakenReply> {
    switch (message.op) {
      case 'begin':
        return this.begin(message, signal, on);
      case 'end':
        assertText(message.result, STEP_LIMITS.resultBytes);
        return this.end(this.openStep(message.id), {
          ...withoutStored(message, this.openStep(message.id)),
          ...decisionOf(message),
        });
      case 'ask': {
        const step = this.openStep(message.id);
        const { question } = step;
        const approvals = question && 'approvals' in question ? question.approvals : [];
        const expiresAt = approvals[0]?.expiresAt;
        const ofServer = approvals.filter((each) => each.question);
        const forms = ofServer.filter((each) => each.question && 'requestedSchema' in each.question);
        // A caller whose answer was unclear gets the same question again.
        const cap = question && 'cap' in question && question.cap !== step.cap ? question.cap : undefined;
        const entry = {
          ...({ event: 'asked', id: step.id } as const),
          ...this.firstMessage(),
          ...(expiresAt !== undefined && { expiresAt }),
          ...(cap && { cap }),
          ...(ofServer.length > 0 && { questions: ofServer.map(({ callId }) => callId) }),
          ...(forms.length > 0 && { forms: forms.map(({ callId }) => callId) }),
          ...(question && 'signIn' in question && { signIn: true as const }),
        };
        await this.append(entry);
        if (cap) this.apply({ ...entry, execution: this.execution, at: '', head: this.head ?? 0 });
        return {};
      }
      case 'compensate':
        await this.beginCompensation(message);
        return {};
      case 'fail': {
        const step = this.openStep(message.id);
        const error = failureOf(message.error);
        const decision = decisionOf(message);
        if (message.retryMs === undefined) return this.end(step, { error, ...decision });
        step.until = Date.now() + clamped(message.retryMs, STEP_LIMITS.sleepMs);
        step.failures += 1;
        const entry = { event: 'failed', id: step.id, error, until: step.until, ...decision } as const;
        await this.append(entry);
        if (!decision.decision) delete step.isUnknown;
        return { until: step.until };
      }
      default:
        throw invalid('a message about a step of no known kind');
    }
  }

  private async beginCompensation({ error, steps, unknown }: Compensating): Promise<void> {
    if (!Array.isArray(steps) || !steps.every((id) => this.steps[id - 1]?.ended))
      throw invalid('steps to compensate that have not ended');
    const { canceled } = this.compensating ?? {};
    if (canceled && !(Array.isArray(unknown) && unknown.every((id) => this.steps[id - 1])))
      throw invalid('steps of unknown outcome that have not begun');
    const compensating: Compensating = {
      error: failureOf(error),
      steps,
      ...(canceled && { canceled, unknown, hasLooked: true }),
    };
    await this.append({ event: 'compensating', id: 0, ...compensating });
    this.compensating = compensating;
  }

  /**
   * Ends this execution. All its entries are replaced by the first one of the next. Throws AgentError for a state that the library never
   * sends.
   * @returns the steps of the next execution, in the same turn
   */
  async continueAs(state: string): Promise<TurnSteps> {
    assertText(state, STEP_LIMITS.resultBytes);
    if (typeof state !== 'string') throw invalid('a state that is no text');
    const next = new TurnSteps(this.turn, this.ports);
    next.execution = this.execution + 1;
    const entry = await next.entryOf({ event: 'continued', id: 0, state, ...this.firstMessage() });
    await this.turn.journal.restart(entry);
    next.position = this.position + 1;
    next.spent = this.spent;
    next.lastModel = this.lastModel;
    next.apply(entry);
    return next;
  }

  /** Whether all steps that had to be undone are undone. Undefined: none had to. */
  get isUndone(): boolean | undefined {
    if (!this.compensating) return undefined;
    const undone = this.steps.filter(({ undoes, ended }) => undoes && ended && !ended.error);
    return undone.length >= this.compensating.steps.length;
  }

  /** The end of a task that has undone the steps of a canceled task. Undefined: it is another task. */
  undoneOutput(): AgentOutput | undefined {
    const { canceled, steps, unknown = [] } = this.compensating ?? {};
    if (!canceled || !steps) return undefined;
    const namesOf = (ids: readonly number[]): string =>
      cut(ids.map((id) => `"${this.steps[id - 1]?.name ?? id}"`).join(', '), MAX_NAMES);
    const undone = steps.length === 0 ? 'Nothing was to be undone.' : `Undone: ${namesOf(steps)}.`;
    const open =
      unknown.length === 0 ? '' : ` It is not known whether this was carried out: ${namesOf(unknown)}.`;
    return status(this.turn, TaskState.TASK_STATE_COMPLETED, `${undone}${open}`);
  }

  /** The part of an output that no earlier attempt has published. */
  replayed(output: AgentOutput): AgentOutput | undefined {
    // The caller has the output of the canceled task.
    if (this.compensating?.canceled) return undefined;
    if (output.$case !== 'artifactUpdate' && output.$case !== 'task') return undefined;
    // A dead attempt may have published more than is known: artifacts are sent again, and the first chunk replaces them.
    if (!this.isExact)
      return output.$case === 'task' ? { ...output, value: { ...output.value, status: undefined } } : output;
    const artifacts = output.$case === 'task' ? output.value.artifacts : [output.value.artifact];
    for (const artifact of artifacts) if (artifact) this.turn.log.keepArtifact(artifact.artifactId);
    return undefined;
  }

  /**
   * The output that asks the question of a turn whose steps all wait. If one of them waits for a time, the task goes on then without an
   * answer. Throws AgentError for a question that the library never sends.
   */
  async ask({ id, question }: NonNullable<Parked['input']>, { wakeInMs }: Parked): Promise<AgentOutput> {
    const step = this.openStep(id);
    const asked = step.question;
    if (step.kind !== 'input' && step.kind !== 'run' && !asked)
      throw invalid('a question of a step that asks nothing');
    const signIn = asked && 'signIn' in asked ? asked.signIn : undefined;
    const output = signIn
      ? status(this.turn, TaskState.TASK_STATE_AUTH_REQUIRED, signInParts(signIn.reason, signIn.offer))
      : inputRequired(this.turn, this.questionParts(step, question));
    const wakes = [wakeInMs, signIn?.offer.forMs].filter((ms) => ms !== undefined);
    if (wakes.length > 0) this.turn.log.wakeIn(clamped(Math.min(...wakes), STEP_LIMITS.sleepMs));
    const isOnly = this.openQuestions().every((each) => each === step);
    if (wakes.length === 0 && isOnly) return output;
    await this.append({ event: 'posed', id });
    this.posedByRun += 1;
    return this.posedByRun === 1 ? output : withOwnId(output, this.posedByRun);
  }

  private questionParts(step: OpenStep, question: unknown[]): Part[] {
    const { question: asked, kind } = step;
    if (asked && 'cap' in asked) return capQuestion(this.approvalIdOf(step), asked.cap, asked.problem);
    if (asked && 'approvals' in asked) return approvalRequest(asked.approvals, asked.problem);
    return kind === 'run' ? outcomeQuestion(step, this.keyOf(step)) : partsOf(question);
  }

  /** The code has gone on without an answer, and ends its turn with a question of its own: the next message answers that one. */
  async dropQuestions(): Promise<void> {
    const error = { name: 'Error', message: 'the agent has gone on without the answer' };
    const dropped = this.openQuestions().filter(({ asked }) => asked !== undefined);
    for (const step of dropped) await this.end(step, { error });
  }

  /**
   * Checks the calls of tools that servers work on, if the code waits for nothing else but times. It neither runs the code nor
   * starts a server. Throws a `Suspension` if the servers still work.
   */
  async *waitOn(signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const { turn, ports } = this;
    const open = this.steps.filter(({ ended }) => !ended);
    const calls = open.flatMap((step) =>
      step.kind === 'tool' && step.remote?.remote.task ? [{ step, stored: step.remote }] : [],
    );
    const times = open.flatMap(({ kind, until }) => (kind === 'sleep' && until !== undefined ? [until] : []));
    if (!ports || this.compensating || calls.length === 0 || calls.length + times.length < open.length)
      return;
    let wakeInMs = Math.min(...times) - Date.now();
    if (wakeInMs <= 0) return;
    for (const { step, stored } of calls) {
      const keep = (remote: RemoteCall): Promise<void> => this.keepRemote(step, { ...stored, remote });
      const waiting = await ports.tools.pollTask(turn, stored, keep, signal);
      if (!waiting) return;
      wakeInMs = Math.min(wakeInMs, waiting.waitMs);
      const { said } = waiting;
      const told = { id: this.callIdOf(step), tool: step.name };
      if (said !== undefined && said !== progressSaid(turn, told))
        yield artifactChunk(turn, progressArtifact(told, said));
    }
    throw new Suspension([], wakeInMs);
  }

  /** For a turn whose steps all wait. */
  suspension({ wakeInMs }: Parked): Suspension {
    const ms = wakeInMs === undefined ? undefined : clamped(wakeInMs, STEP_LIMITS.sleepMs);
    const tasks = [...new Set(this.waiting.values())];
    if (tasks.length === 0 && ms === undefined) throw invalid('a turn that waits for nothing');
    return new Suspension(tasks, ms);
  }

  private async restore(entries: readonly (JournalEntry & { value: StepEntry })[]): Promise<void> {
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
    if (question === undefined) return;
    const asking = this.openStep(question);
    if (asking.kind === 'run') {
      asking.answer = outcomeAnswer(this.turn.message);
      await this.append({ event: 'answered', id: question, answer: asking.answer });
      // The turn before has ended with the question.
      this.isExact = true;
      return;
    }
    if (asking.kind === 'tool' || asking.kind === 'model') {
      const entry = { event: 'answered', id: question, ...this.answerOf(asking) } as const;
      await this.append(entry);
      this.apply({ ...entry, execution: this.execution, at: '', head: this.head ?? 0 });
      this.isExact = true;
      return;
    }
    const answer = historyBefore(this.turn).length;
    const details = detailsToJson(this.turn.details);
    const saysSomething = Object.keys(details).length > 0;
    await this.append({ event: 'ended', id: question, answer, ...(saysSomething && { details }) });
    const step = this.openStep(question);
    step.ended = { order: ++this.ends, result: this.answerAt(answer, details) };
    // The turn before has ended with the question, after all that it had published.
    this.isExact = true;
  }

  /** The answer in this turn's message about a call of a model or a tool. */
  private answerOf(step: OpenStep): Omit<OutcomeAnswered, keyof EntryHead | 'event'> {
    const { message } = this.turn;
    const { questions, forms, signIn } = step.asking ?? {};
    // The call is made again: it finds the sign-in, or asks for it again.
    if (signIn) return { answer: { done: false } };
    if (isSentByAgent(message))
      return { answer: { problem: 'Only a person can answer this, and not an agent.' } };
    const by = approverOf(message);
    if (!questions) {
      const decision = this.decisionAbout(step, by);
      return 'problem' in decision
        ? { answer: { problem: decision.problem } }
        : { answer: { done: decision.approved }, decision };
    }
    const { decisions, problem } = readAnswer(message, questions, questions, forms);
    if (problem !== undefined) return { answer: { problem } };
    return { answer: { done: true }, decisions: decisions.map((each) => ({ ...each, ...(by && { by }) })) };
  }

  /** Only a person decides. */
  private decisionAbout(step: OpenStep, by: Approver | undefined): Decision | { problem: string } {
    const { message } = this.turn;
    const callId = this.approvalIdOf(step);
    const expiry = step.expiresAt === undefined ? undefined : Date.parse(step.expiresAt);
    if (expiry !== undefined && expiry <= (by ? Date.parse(by.at) : clock.now())) {
      const reason = `no answer came before ${step.expiresAt}, when the question expired`;
      return { callId, approved: false, reason };
    }
    const { decisions, problem } = readAnswer(message, [callId], [callId]);
    const [decision] = decisions;
    if (problem !== undefined || !decision) return { problem: problem ?? 'That is neither yes nor no.' };
    const wrong =
      step.cap && decision.approved && decision.input !== undefined && capInputProblem(decision.input);
    if (wrong) return { problem: wrong };
    return { ...decision, ...(by && { by }) };
  }

  /** The id of what a person is asked. Each question about a cap is one of its own. */
  private approvalIdOf(step: OpenStep): string {
    return step.cap ? `${this.callIdOf(step)}-cap-${step.capsAsked ?? 1}` : this.callIdOf(step);
  }

  private callIdOf({ id }: OpenStep): string {
    return `step-${this.execution}-${id}`;
  }

  private apply(entry: StepEntry): void {
    const step = this.steps[entry.id - 1];
    if (entry.event === 'posed') {
      if (step) step.asked = ++this.posed;
      // If the code has published nothing since the entry before, two events follow: the question, and that the task works again.
      if (entry.head >= 0 && entry.head === this.head) this.head += 2;
      return;
    }
    // The process does not know of it yet: what it publishes until the step ends comes after the entry.
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
      const said = step.called && !entry.error ? resultFrom(step.called, entry.result) : entry.result;
      const result = entry.answer === undefined ? said : this.answerAt(entry.answer, entry.details);
      step.ended = {
        order: ++this.ends,
        ...(result !== undefined && { result }),
        ...(entry.error && { error: entry.error }),
      };
    }
  }

  /** The message of the caller, with `metadata` and `configuration` of its request, as JSON. */
  private answerAt(index: number, request: DetailsJson = {}): string {
    const message = this.turn.task.history[index] ?? this.turn.message;
    return JSON.stringify({ message: Message.toJSON(message), request });
  }

  private async begin(
    message: Extract<StepMessage, { op: 'begin' }>,
    signal: AbortSignal,
    on: StepListeners,
  ): Promise<TakenReply> {
    const { id, name, nth, kind, alone, ms, agent, request } = message;
    assertText(name, STEP_LIMITS.name * 4);
    assertText(agent, STEP_LIMITS.name * 4);
    assertText(request, kind === 'model' ? STEP_LIMITS.modelRequestBytes : STEP_LIMITS.resultBytes);
    const known = this.steps[id - 1];
    const isNew = id === this.steps.length + 1;
    if (!known && !isNew) throw invalid('a step out of order');
    if (known && (known.ended || known.kind !== kind || known.name !== name))
      throw invalid('a step that has ended');
    if (
      typeof name !== 'string' ||
      name === '' ||
      !Number.isInteger(nth) ||
      typeof alone !== 'boolean' ||
      !STEP_KINDS.includes(kind)
    ) {
      throw invalid('a step without name or kind');
    }
    if (isNew) {
      const max = STEP_LIMITS.steps * (this.compensating ? 2 : 1);
      if (this.total >= max) throw invalid(`more than ${max} steps in a task`);
      this.total += 1;
    }
    // A call that is asked for again is no other try: it has one child. A model that has answered is not asked again, and a tool whose
    // server goes on is not called again.
    const isTried = (kind === 'model' || kind === 'tool') && !known?.called && !known?.remote;
    if (isNew || kind === 'run' || isTried) {
      const waits = kind === 'sleep' || (kind === 'input' && ms !== undefined);
      const until = waits ? Date.now() + clamped(ms, STEP_LIMITS.sleepMs) : undefined;
      const entry = {
        ...({ event: 'begun', id, name, nth, kind, alone } as const),
        ...(until !== undefined && { until }),
        ...(kind === 'agent' && { agent: agent ?? '' }),
        ...(kind === 'input' && this.firstMessage()),
        ...(known?.isUnknown && { decision: decisionOf(message).decision ?? 'repeated' }),
        ...(message.compensates === true && { compensates: true as const }),
      };
      // Before the step has an effect: a cancel must find it.
      if (entry.compensates && !this.steps.some(({ compensates }) => compensates))
        await this.turn.journal.noteCompensable();
      await this.append(entry);
      this.apply({ ...entry, execution: this.execution, at: '', head: this.head ?? 0 });
      const step = this.openStep(id);
      if (until !== undefined) return { until };
      if (kind === 'run') {
        delete step.until;
        return { key: this.keyOf(step) };
      }
    }
    if (kind === 'model') return { later: this.callModel(this.openStep(id), message, signal, on) };
    if (kind === 'tool') return { later: this.useTools(this.openStep(id), request ?? '', signal, on) };
    if (kind === 'state') return this.useState(this.openStep(id), request ?? '');
    return kind === 'agent' ? this.call(this.openStep(id), request ?? '', signal) : {};
  }

  /** Reads or writes the state of the context. A write that a crash has interrupted is recognized by its writer. */
  private async useState(step: OpenStep, request: string): Promise<StepReply> {
    const { state, secrets } = this.turn;
    const { key, value, expected } = stateRequestOf(request);
    let result: object;
    if (value === undefined) {
      const found = await state.read(key);
      result = { version: found?.version ?? 0, ...(found && { value: parsed(found.value) }) };
    } else {
      const clean = JSON.stringify(secrets.redactor.value(parsed(value)));
      const writer = this.keyOf(step);
      const write = { key, value: clean, writer, ...(expected !== undefined && { expected }) };
      const written = await state.write(write);
      if (written.outcome === 'full') return this.fail(step, 'the state of a context has at most 64 keys');
      const { current } = written.outcome === 'conflict' ? written : {};
      result =
        written.outcome === 'written'
          ? { isSet: true, version: written.version }
          : {
              isSet: false,
              version: current?.version ?? 0,
              ...(current && { value: parsed(current.value) }),
            };
    }
    const json = JSON.stringify(result);
    await this.end(step, { result: json });
    return { result: json };
  }

  /** Asks the model, unless it has answered before. The process ends the step, so that all it published before is in the log then. */
  private async callModel(
    step: OpenStep,
    { request = '', streams }: Extract<StepMessage, { op: 'begin' }>,
    signal: AbortSignal,
    { piece: onPiece }: StepListeners,
  ): Promise<StepReply> {
    const { turn, ports } = this;
    if (!ports) throw new Error('this turn has no models');
    if (step.called?.kind === 'step') return ports.models.check(turn, request, step.called);
    const stop = AbortSignal.any([signal, this.closing.signal]);
    const { cap: full, decision, problem } = step;
    if (full && !decision) {
      step.question = { cap: full, ...(problem !== undefined && { problem }) };
      return { asks: true };
    }
    if (full && !decision?.approved) {
      const message = `${full.reason} A person has refused more: ${decision?.reason ?? 'no'}`;
      return { failed: { name: 'TokensExceeded', message } };
    }
    if (full && decision) {
      const allowed = { ...full, micros: allowedMicros(full, decision) };
      await ports.models.allow(turn, allowed, `${turn.task.id}/${this.approvalIdOf(step)}`, stop);
    }
    const reply = await ports.models.call(turn, request, {
      signal: stop,
      spent: () => this.spent.run,
      ...(streams && onPiece && { onPiece }),
      keep: async (call, record) => {
        const { head } = this;
        const entry = {
          ...({ event: 'called', execution: this.execution, id: step.id, head: head ?? -1 } as const),
          ...call,
          at: call.at ?? clock.date().toISOString(),
        };
        this.assertRoom(entry);
        await turn.journal.append(entry, record);
        this.position += 1;
        this.count(entry, true);
        this.apply(entry);
        return this.position;
      },
    });
    if (!('cap' in reply)) return reply;
    step.question = { cap: reply.cap };
    return { asks: true };
  }

  /** Lists tools, or makes a call. A result that is stored is not asked for again. The process ends the step, as that of a call of a model. */
  private async useTools(
    step: OpenStep,
    request: string,
    signal: AbortSignal,
    { say = () => undefined }: StepListeners,
  ): Promise<StepReply> {
    const { turn, ports } = this;
    if (!ports) throw new Error('this turn has no tools');
    if (step.called?.kind === 'result') return { result: resultOf(step.called) };
    const { decision, isSent = false, expiresAt, input, remote, answered } = step;
    const known = {
      callId: this.callIdOf(step),
      key: this.keyOf(step),
      decision,
      isSent,
      expiresAt,
      input,
      kept: remote?.remote,
      answer: answered,
    };
    const outcome = await ports.tools.use(turn, request, known, {
      signal: AbortSignal.any([signal, this.closing.signal]),
      onSend: () => this.note({ event: 'sent', id: step.id, at: clock.date().toISOString() }),
      onRefused: () => this.note({ event: 'unsent', id: step.id, at: clock.date().toISOString() }),
      keepRemote: (stored) => this.keepRemote(step, stored),
      say,
      keep: (call) => this.note({ event: 'called', id: step.id, ...call }),
    });
    if ('waitMs' in outcome) return { until: Date.now() + outcome.waitMs };
    if ('signIn' in outcome) return this.askToSignIn(step, outcome.signIn);
    if (!('questions' in outcome)) return outcome;
    const problem = outcome.problem ?? step.problem;
    step.question = { approvals: outcome.questions, ...(problem !== undefined && { problem }) };
    return { asks: true };
  }

  private async askToSignIn(step: OpenStep, error: SignInNeeded): Promise<StepReply> {
    const offer = await this.turn.secrets.offerSignIn(error.request);
    const reason = needsSignIn(error);
    if (!offer) return { failed: { name: 'ToolError', message: notSignedIn(reason) } };
    step.question = { signIn: { reason, offer } };
    return { asks: true };
  }

  /** Stores the state of a call at its server. A cancel of the task finds it there. */
  private async keepRemote(step: OpenStep, stored: StoredRemoteCall): Promise<void> {
    if (stored.remote.task && !step.remote?.remote.task) await this.turn.journal.noteRemoteCall();
    const call = this.callIdOf(step);
    const at = clock.date().toISOString();
    await this.note({ event: 'remote', kind: 'remote', id: step.id, at, call, ...stored });
  }

  /** Stores an entry about a call that is under way. The process does not know of it. */
  private async note(
    entry:
      | WithoutHead<ToolSent>
      | WithoutHead<ToolUnsent>
      | WithoutHead<ToolRemote>
      | (Pick<EntryHead, 'id'> & { event: 'called' } & MadeCall),
  ): Promise<void> {
    const value = { execution: this.execution, head: this.head ?? -1, ...entry };
    this.assertRoom(value);
    await this.turn.journal.append(value);
    this.position += 1;
    this.apply(value);
  }

  private count({ usage, model }: Pick<ModelStep, 'usage' | 'model'>, isOfThisRun: boolean): void {
    const { run, task } = this.spent;
    this.spent = { run: isOfThisRun ? add(run, usage) : run, task: add(task, usage) };
    this.lastModel = model;
  }

  /** Position of the first message of the execution, with `metadata` and `configuration` of its request. */
  private firstMessage(): Pick<Continued, 'start' | 'details'> {
    const { firstTurn } = this;
    const details = detailsToJson(firstTurn.details);
    const saysSomething = Object.keys(details).length > 0;
    return { start: historyBefore(firstTurn).length, ...(saysSomething && { details }) };
  }

  /** Finds or creates the child of a call, and ends the step if the child has ended its turn. */
  private async call(step: OpenStep, request: string, signal: AbortSignal): Promise<StepReply> {
    const { turn, ports } = this;
    const { message, data, taskId } = requestOf(request);
    const agent = await ports?.agents.find(turn.tenantId, step.agent ?? '');
    if (!ports || !agent || agent.status) return this.fail(step, `There is no agent "${step.agent ?? ''}".`);
    const callId = `step-${this.execution}-${step.id}`;
    const others = this.steps.filter(
      (other) => other.id < step.id && other.agent === step.agent && !other.ended,
    );
    try {
      const child = await ports.children.call(turn, {
        callId,
        lane: others.length + 1,
        agent,
        message,
        limits: ports.limits,
        signal,
        ...(data !== undefined && { data }),
        ...(taskId !== undefined && { taskId }),
      });
      if (child.isAtWork) {
        this.waiting.set(step.id, child.task.id);
        return { isWaiting: true };
      }
      const reply = replyOf(agent, child);
      if (!reply.ok) return await this.fail(step, String(reply.content));
      const asked = reply.content as { state?: string; question?: string };
      const isAsking = reply.text !== undefined;
      const result = JSON.stringify({
        taskId: child.task.id,
        state: isAsking ? asked.state : 'completed',
        content: isAsking ? asked.question : reply.content,
      });
      if (Buffer.byteLength(result) > STEP_LIMITS.resultBytes) {
        return await this.fail(
          step,
          `the answer of ${agent.slug} has more than ${STEP_LIMITS.resultBytes} bytes`,
        );
      }
      await this.end(step, { result });
      return { result };
    } catch (error) {
      if (error instanceof ChildRefusal) return this.fail(step, error.message);
      throw error;
    }
  }

  private async fail(step: OpenStep, message: string): Promise<StepReply> {
    const error = failureOf({ name: 'Error', message });
    await this.end(step, { error });
    return { error };
  }

  private async end(
    step: OpenStep,
    { result, error, decision }: Pick<Ended, 'result' | 'error' | 'decision'>,
  ): Promise<StepReply> {
    const end = { ...(result !== undefined && { result }), ...(error && { error }) };
    await this.append({ event: 'ended', id: step.id, ...end, ...(decision && { decision }) });
    step.ended = { order: ++this.ends, ...end };
    this.waiting.delete(step.id);
    return {};
  }

  private async append(entry: NewStepEntry): Promise<void> {
    const value = await this.entryOf(entry);
    await this.turn.journal.append(value);
    this.position += 1;
    this.head = value.head;
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

  private keyOf({ nth, name }: Pick<RecordedStep, 'nth' | 'name'>): string {
    return effectKey(taskOfEffects(this.turn), 'step', this.execution, nth, name);
  }

  private openQuestions(): OpenStep[] {
    return this.steps.filter(({ kind, ended }) => kind === 'input' && !ended);
  }

  private openStep(id: number): OpenStep {
    const step = this.steps[id - 1];
    if (!step || step.ended) throw invalid('a step that is not under way');
    return step;
  }
}

/** Records about a step before it has ended. */
export interface StepListeners {
  piece?: (piece: ModelPiece) => void;
  say?: (output: AgentOutput) => void;
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

type WithoutHead<T extends EntryHead> = Omit<T, 'execution' | 'head'>;

/** The end of a call whose result the journal has already. */
function withoutStored<Message extends { result?: string }>(message: Message, { called }: OpenStep): Message {
  const { result: _, ...rest } = message;
  return called?.kind === 'result' ? (rest as Message) : message;
}

/** The part of a step that the process gets. */
function recordOf(step: OpenStep): RecordedStep {
  const { id, name, nth, kind, alone, attempts, failures, isUnknown, answer, until, asked, ended } = step;
  const record = { id, name, nth, kind, alone, attempts, failures };
  return {
    ...record,
    ...(isUnknown && { isUnknown }),
    ...(answer && { answer }),
    ...(until !== undefined && { until }),
    ...(asked !== undefined && { asked }),
    ...(ended && { ended }),
  };
}

type WithoutExecution<T> = T extends unknown ? Omit<T, 'execution' | 'at' | 'head'> : never;
type NewStepEntry = WithoutExecution<Exclude<StepEntry, ModelCalled | ToolSent | ToolUnsent | ToolRemote>>;

const isStepEntry = (entry: JournalEntry): entry is JournalEntry & { value: StepEntry } =>
  typeof (entry.value as Partial<StepEntry> | null)?.execution === 'number';

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

/** Throws AgentError for a value that is not a part. */
function partsOf(question: unknown[]): Part[] {
  try {
    const { parts } = Message.fromJSON({ parts: question });
    return parts.length > 0 ? parts : [textPart('')];
  } catch {
    throw invalid('a question that is no list of parts');
  }
}

/** A run that asks again sends another message. */
function withOwnId(output: AgentOutput, number: number): AgentOutput {
  if (output.$case !== 'statusUpdate' || !output.value.status?.message) return output;
  const { message } = output.value.status;
  const status = {
    ...output.value.status,
    message: { ...message, messageId: `${message.messageId}-${number}` },
  };
  return { ...output, value: { ...output.value, status } };
}

function decisionOf({ decision }: { decision?: OutcomeDecision }): { decision?: OutcomeDecision } {
  if (decision === undefined) return {};
  if (OUTCOME_DECISIONS.includes(decision)) return { decision };
  throw invalid('a decision about an outcome of no known kind');
}

/** A process of Baton checks this before it sends. */
function invalid(problem: string): AgentError {
  return new AgentError({ name: 'StepError', message: `The agent's process sent ${problem}` });
}

function assertText(text: unknown, maxBytes: number): void {
  if (text === undefined || (typeof text === 'string' && Buffer.byteLength(text) <= maxBytes)) return;
  throw invalid(`a step with a text of more than ${maxBytes} bytes`);
}

function clamped(ms: unknown, max: number): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= max) return ms;
  throw invalid('a step with an invalid time');
}

function failureOf(error: unknown): StepFailure {
  const said = (typeof error === 'object' && error !== null ? error : {}) as Partial<StepFailure>;
  return {
    name: cut(String(said.name), 200),
    message: cut(String(said.message), STEP_LIMITS.error),
    ...errorExtras(said),
  };
}

// oxlint-disable-next-line no-restricted-properties -- bounded, and of the operator's code
const parsed = (json: string): unknown => JSON.parse(json) as unknown;

/** Throws AgentError for a request that the library never sends. */
function stateRequestOf(request: string): StateRequest {
  const { key, value, expected } = parsed(request || '{}') as Partial<StateRequest>;
  const isKey = typeof key === 'string' && key !== '' && key.length <= STEP_LIMITS.stateKey;
  const isVersion = expected === undefined || (Number.isSafeInteger(expected) && expected >= 0);
  if (!isKey || !isVersion) throw invalid('an invalid key or version');
  assertText(value, STEP_LIMITS.stateBytes);
  return { key, ...(value !== undefined && { value }), ...(expected !== undefined && { expected }) };
}

function requestOf(request: string): { message: string; data?: unknown; taskId?: string } {
  // oxlint-disable-next-line no-restricted-properties -- bounded, and of the operator's code
  const { message, data, taskId } = JSON.parse(request || '{}') as Record<string, unknown>;
  if (typeof message !== 'string' || (taskId !== undefined && typeof taskId !== 'string')) {
    throw invalid('a call without a message');
  }
  return { message, ...(data !== undefined && { data }), ...(taskId !== undefined && { taskId }) };
}
