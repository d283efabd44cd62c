import { TaskState } from '@baton/a2a';
import { type AgentOutput, status, type Turn } from '../../../agent-runtime.js';
import { Suspension } from '../../../suspension.js';
import type { ModelPiece } from '../model-protocol.js';
import { cut } from '../protocol.js';
import {
  type Compensating,
  type Parked,
  STEP_LIMITS,
  type StepMessage,
  type StepReply,
} from '../step-protocol.js';
import type { TurnModels } from '../turn-models.js';
import type { TurnTools } from '../turn-tools.js';
import { type AgentCallPorts, callAgent } from './agent-step.js';
import { callModel } from './model-step.js';
import type { OpenStep } from './open-step.js';
import { useState } from './state-step.js';
import { assertBegin, assertText, timeOf, decisionOf, failureOf, invalid } from './step-checks.js';
import { JournaledSteps } from './journaled-steps.js';
import { StepQuestions } from './step-questions.js';
import { ToolSteps } from './tool-steps.js';

/** The parts of the platform that steps need to call other agents, models and tools. */
export interface TurnStepPorts extends AgentCallPorts {
  models: Pick<TurnModels, 'allow' | 'call' | 'check'>;
  tools: Pick<TurnTools, 'use' | 'pollTask' | 'close'>;
}

/** Characters of the names of steps in a message: a caller reads it. */
const MAX_NAMES = 2_000;

/** The reply to a message about a step, or one that comes while other steps continue. */
export type TakenReply = StepReply | { later: Promise<StepReply> };

/** Records about a step before it has ended. */
export interface StepListeners {
  piece?: (piece: ModelPiece) => void;
  say?: (output: AgentOutput) => void;
}

/**
 * The worker's side of the durable steps of a turn: takes the reports of an agent's process about its steps, and makes the calls that
 * steps ask for.
 */
export class TurnSteps {
  readonly questions: StepQuestions;
  /** Undefined: this turn is only read. */
  readonly tools: ToolSteps | undefined;
  private readonly closing = new AbortController();

  private constructor(
    readonly journal: JournaledSteps,
    private readonly ports: TurnStepPorts | undefined,
  ) {
    this.questions = new StepQuestions(journal);
    this.tools = ports && new ToolSteps(journal, ports.tools);
  }

  /** Reads the steps of a turn. This turn's message is stored as the answer if a step has asked. */
  static async open(turn: Turn, ports?: TurnStepPorts): Promise<TurnSteps> {
    const journal = await JournaledSteps.open(turn);
    const steps = new TurnSteps(journal, ports);
    if (journal.asking !== undefined) await steps.questions.takeAnswer(journal.asking);
    return steps;
  }

  /** The turn is over: aborts model calls that no step waits for. */
  close(): void {
    this.closing.abort('closed');
    void this.ports?.tools.close();
  }

  /**
   * Stores the report of a step. Resolves when it is durable. Throws AgentError for a report that the library never sends.
   * @param on `piece` is called with the text of a model as it arrives, if the process asks for it, and `say` with the progress of a
   * tool call
   */
  async take(message: StepMessage, signal: AbortSignal, on: StepListeners = {}): Promise<TakenReply> {
    const { journal } = this;
    switch (message.op) {
      case 'begin':
        return this.begin(message, signal, on);
      case 'end':
        assertText(message.result, STEP_LIMITS.resultBytes);
        return journal.end(journal.openStep(message.id), {
          ...withoutStored(message, journal.openStep(message.id)),
          ...decisionOf(message),
        });
      case 'ask':
        await this.questions.noteAsked(journal.openStep(message.id));
        return {};
      case 'compensate':
        await this.beginCompensation(message);
        return {};
      case 'fail': {
        const step = journal.openStep(message.id);
        const error = failureOf(message.error);
        const decision = decisionOf(message);
        if (message.retryMs === undefined) return journal.end(step, { error, ...decision });
        step.until = Date.now() + timeOf(message.retryMs, STEP_LIMITS.sleepMs);
        step.failures += 1;
        const entry = { event: 'failed', id: step.id, error, until: step.until, ...decision } as const;
        await journal.append(entry);
        if (!decision.decision) delete step.isUnknown;
        return { until: step.until };
      }
      default:
        throw invalid('a message about a step of no known kind');
    }
  }

  private async beginCompensation({ error, steps, unknown }: Compensating): Promise<void> {
    const { journal } = this;
    if (!Array.isArray(steps) || !steps.every((id) => journal.steps[id - 1]?.ended))
      throw invalid('steps to compensate that have not ended');
    const { canceled } = journal.compensating ?? {};
    if (canceled && !(Array.isArray(unknown) && unknown.every((id) => journal.steps[id - 1])))
      throw invalid('steps of unknown outcome that have not begun');
    const compensating: Compensating = {
      error: failureOf(error),
      steps,
      ...(canceled && { canceled, unknown, hasLooked: true }),
    };
    await journal.append({ event: 'compensating', id: 0, ...compensating });
    journal.compensating = compensating;
  }

  /**
   * Ends this execution. Throws AgentError for a state that the library never sends.
   * @returns the steps of the next execution, in the same turn
   */
  async continueAs(state: string): Promise<TurnSteps> {
    assertText(state, STEP_LIMITS.resultBytes);
    if (typeof state !== 'string') throw invalid('a state that is no text');
    return new TurnSteps(await this.journal.restart(state), this.ports);
  }

  /** Whether all steps that had to be undone are undone. Undefined: none had to. */
  get isUndone(): boolean | undefined {
    if (!this.journal.compensating) return undefined;
    const undone = this.journal.steps.filter(({ undoes, ended }) => undoes && ended && !ended.error);
    return undone.length >= this.journal.compensating.steps.length;
  }

  /** The end of a task that has undone the steps of a canceled task. Undefined: it is another task. */
  undoneOutput(): AgentOutput | undefined {
    const { canceled, steps, unknown = [] } = this.journal.compensating ?? {};
    if (!canceled || !steps) return undefined;
    const namesOf = (ids: readonly number[]): string =>
      cut(ids.map((id) => `"${this.journal.steps[id - 1]?.name ?? id}"`).join(', '), MAX_NAMES);
    const undone = steps.length === 0 ? 'Nothing was to be undone.' : `Undone: ${namesOf(steps)}.`;
    const open =
      unknown.length === 0 ? '' : ` It is not known whether this was carried out: ${namesOf(unknown)}.`;
    return status(this.journal.turn, TaskState.TASK_STATE_COMPLETED, `${undone}${open}`);
  }

  /** The part of an output that no earlier attempt has published. */
  replayed(output: AgentOutput): AgentOutput | undefined {
    // The caller has the output of the canceled task.
    if (this.journal.compensating?.canceled) return undefined;
    if (output.$case !== 'artifactUpdate' && output.$case !== 'task') return undefined;
    // A dead attempt may have published more than is known: artifacts are sent again, and the first chunk replaces them.
    if (!this.journal.isExact)
      return output.$case === 'task' ? { ...output, value: { ...output.value, status: undefined } } : output;
    const artifacts = output.$case === 'task' ? output.value.artifacts : [output.value.artifact];
    for (const artifact of artifacts) if (artifact) this.journal.turn.log.keepArtifact(artifact.artifactId);
    return undefined;
  }

  /** For a turn whose steps all wait. */
  suspension({ wakeInMs }: Parked): Suspension {
    const ms = wakeInMs === undefined ? undefined : timeOf(wakeInMs, STEP_LIMITS.sleepMs);
    const tasks = [...new Set(this.journal.steps.flatMap(({ child }) => child ?? []))];
    if (tasks.length === 0 && ms === undefined) throw invalid('a turn that waits for nothing');
    return new Suspension(tasks, ms);
  }

  private async begin(
    message: Extract<StepMessage, { op: 'begin' }>,
    signal: AbortSignal,
    on: StepListeners,
  ): Promise<TakenReply> {
    const { journal } = this;
    const { id, name, nth, kind, alone, ms, agent, request = '' } = message;
    assertBegin(message, journal.steps);
    const known = journal.steps[id - 1];
    if (!known) journal.countStep();
    // A call that is asked for again is no other try: it has one child. A model that has answered is not asked again, and a tool whose
    // server is at work is not called again.
    const isTried = (kind === 'model' || kind === 'tool') && !known?.called && !known?.remote;
    if (!known || kind === 'run' || isTried) {
      const waits = kind === 'sleep' || (kind === 'input' && ms !== undefined);
      const until = waits ? Date.now() + timeOf(ms, STEP_LIMITS.sleepMs) : undefined;
      const entry = {
        ...({ event: 'begun', id, name, nth, kind, alone } as const),
        ...(until !== undefined && { until }),
        ...(kind === 'agent' && { agent: agent ?? '' }),
        ...(kind === 'input' && journal.firstMessage()),
        ...(known?.isUnknown && { decision: decisionOf(message).decision ?? 'repeated' }),
        ...(message.compensates === true && { compensates: true as const }),
      };
      // Before the step has an effect: a cancel must find it.
      if (entry.compensates && !journal.steps.some(({ compensates }) => compensates))
        await journal.turn.journal.noteCompensable();
      journal.apply(await journal.append(entry));
      const step = journal.openStep(id);
      if (until !== undefined) return { until };
      if (kind === 'run') {
        delete step.until;
        return { key: journal.keyOf(step) };
      }
    }
    const step = journal.openStep(id);
    if (kind === 'state') return useState(journal, step, request);
    if (kind === 'agent') return callAgent(journal, this.ports, step, request, signal);
    if (kind !== 'model' && kind !== 'tool') return {};
    if (!this.tools || !this.ports) throw new Error('this turn has no models and no tools');
    const stop = AbortSignal.any([signal, this.closing.signal]);
    if (kind === 'tool') return { later: this.tools.use(step, request, stop, on.say ?? (() => undefined)) };
    const onPiece = message.streams ? on.piece : undefined;
    return { later: callModel(journal, this.ports.models, step, request, stop, onPiece) };
  }
}

/** The end of a call whose result the journal has already. */
function withoutStored<Message extends { result?: string }>(message: Message, { called }: OpenStep): Message {
  const { result: _, ...rest } = message;
  return called?.kind === 'result' ? (rest as Message) : message;
}
