import { type AgentOutput, artifactChunk } from '../../../agent-runtime.js';
import type { SignInNeeded } from '../../../sign-in-needed.js';
import { needsSignIn, notSignedIn } from '../../../sign-in-request.js';
import { Suspension } from '../../../suspension.js';
import type { RemoteCall } from '../../llm/tools/remote-call.js';
import { progressArtifact, progressSaid } from '../../llm/turn-artifacts.js';
import type { StepReply } from '../step-protocol.js';
import { resultOf, type StoredRemoteCall, type TurnTools } from '../turn-tools.js';
import type { OpenStep } from './open-step.js';
import type { JournaledSteps } from './journaled-steps.js';

/** The steps of a turn that use tools. */
export class ToolSteps {
  constructor(
    private readonly journal: JournaledSteps,
    private readonly tools: Pick<TurnTools, 'use' | 'pollTask'>,
  ) {}

  /** Lists tools, or makes a call. A result that is stored is not asked for again. The process ends the step, as that of a model call. */
  async use(
    step: OpenStep,
    request: string,
    signal: AbortSignal,
    say: (output: AgentOutput) => void,
  ): Promise<StepReply> {
    const { journal } = this;
    if (step.called?.kind === 'result') return { result: resultOf(step.called) };
    const { decision, isSent = false, expiresAt, input, remote, answered } = step;
    const known = {
      callId: journal.callIdOf(step),
      key: journal.keyOf(step),
      decision,
      isSent,
      expiresAt,
      input,
      kept: remote?.remote,
      answer: answered,
    };
    const outcome = await this.tools.use(journal.turn, request, known, {
      signal,
      onSend: async () => void (await journal.note({ event: 'sent', id: step.id })),
      onRefused: async () => void (await journal.note({ event: 'unsent', id: step.id })),
      keepRemote: (stored) => this.keepRemote(step, stored),
      say,
      keep: async (call) => void (await journal.note({ event: 'called', id: step.id, ...call })),
    });
    if ('waitMs' in outcome) return { until: Date.now() + outcome.waitMs };
    if ('signIn' in outcome) return this.askToSignIn(step, outcome.signIn);
    if (!('questions' in outcome)) return outcome;
    const problem = outcome.problem ?? step.problem;
    step.question = { approvals: outcome.questions, ...(problem !== undefined && { problem }) };
    return { asks: true };
  }

  /**
   * Checks the tool calls that servers work on, if the code waits for nothing else but times. It neither runs the code nor
   * starts a server. Throws a `Suspension` if the servers still work.
   */
  async *waitOn(signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const { turn, steps, compensating } = this.journal;
    const open = steps.filter(({ ended }) => !ended);
    const calls = open.flatMap((step) =>
      step.kind === 'tool' && step.remote?.remote.task ? [{ step, stored: step.remote }] : [],
    );
    const times = open.flatMap(({ kind, until }) => (kind === 'sleep' && until !== undefined ? [until] : []));
    if (compensating || calls.length === 0 || calls.length + times.length < open.length) return;
    let wakeInMs = Math.min(...times) - Date.now();
    if (wakeInMs <= 0) return;
    for (const { step, stored } of calls) {
      const keep = (remote: RemoteCall): Promise<void> => this.keepRemote(step, { ...stored, remote });
      const waiting = await this.tools.pollTask(turn, stored, keep, signal);
      if (!waiting) return;
      wakeInMs = Math.min(wakeInMs, waiting.waitMs);
      const { said } = waiting;
      const shownCall = { id: this.journal.callIdOf(step), tool: step.name };
      if (said !== undefined && said !== progressSaid(turn, shownCall))
        yield artifactChunk(turn, progressArtifact(shownCall, said));
    }
    throw new Suspension([], wakeInMs);
  }

  private async askToSignIn(step: OpenStep, error: SignInNeeded): Promise<StepReply> {
    const offer = await this.journal.turn.secrets.offerSignIn(error.request);
    const reason = needsSignIn(error);
    if (!offer) return { failed: { name: 'ToolError', message: notSignedIn(reason) } };
    step.question = { signIn: { reason, offer } };
    return { asks: true };
  }

  /** Stores the state of a call at its server. A cancel of the task finds it there. */
  private async keepRemote(step: OpenStep, stored: StoredRemoteCall): Promise<void> {
    const { journal } = this;
    if (stored.remote.task && !step.remote?.remote.task) await journal.turn.journal.noteRemoteCall();
    await journal.note({
      event: 'remote',
      kind: 'remote',
      id: step.id,
      call: journal.callIdOf(step),
      ...stored,
    });
  }
}
