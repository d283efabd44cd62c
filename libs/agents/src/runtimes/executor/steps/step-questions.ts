import { clock } from '@baton/telemetry';
import { detailsToJson, type Part, TaskState } from '@baton/a2a';
import { type AgentOutput, historyBefore, inputRequired, status } from '../../../agent-runtime.js';
import { type Approver, approverOf, type Decision, isSentByAgent } from '../../../approvals.js';
import { signInParts } from '../../../sign-in-request.js';
import { readAnswer } from '../../llm/approval/approval-answer.js';
import { approvalRequest } from '../../llm/approval/approval-question.js';
import { capInputProblem, capQuestion } from '../../llm/approval/cap-question.js';
import { type Parked, STEP_LIMITS } from '../step-protocol.js';
import type { OpenStep } from './open-step.js';
import { outcomeAnswer, outcomeQuestion } from './outcome-question.js';
import { timeOf, invalid, partsOf } from './step-checks.js';
import type { EntryHead, OutcomeAnswered } from './step-entry.js';
import type { JournaledSteps } from './journaled-steps.js';

/** The questions of steps to persons, and the answers in messages. */
export class StepQuestions {
  constructor(private readonly journal: JournaledSteps) {}

  /** Stores that a person is asked about a step next. */
  async noteAsked(step: OpenStep): Promise<void> {
    const { question } = step;
    const approvals = question && 'approvals' in question ? question.approvals : [];
    const expiresAt = approvals[0]?.expiresAt;
    const ofServer = approvals.filter((each) => each.question);
    const forms = ofServer.filter((each) => each.question && 'requestedSchema' in each.question);
    // A caller whose answer was unclear gets the same question again.
    const cap = question && 'cap' in question && question.cap !== step.cap ? question.cap : undefined;
    const entry = {
      ...({ event: 'asked', id: step.id } as const),
      ...this.journal.firstMessage(),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(cap && { cap }),
      ...(ofServer.length > 0 && { questions: ofServer.map(({ callId }) => callId) }),
      ...(forms.length > 0 && { forms: forms.map(({ callId }) => callId) }),
      ...(question && 'signIn' in question && { signIn: true as const }),
    };
    const stored = await this.journal.append(entry);
    if (cap) this.journal.apply(stored);
  }

  /**
   * The output that asks the question of a turn whose steps all wait. If one of them waits for a time, the task continues then without an
   * answer. Throws AgentError for a question that the library never sends.
   */
  async ask({ id, question }: NonNullable<Parked['input']>, { wakeInMs }: Parked): Promise<AgentOutput> {
    const { journal } = this;
    const step = journal.openStep(id);
    const asked = step.question;
    if (step.kind !== 'input' && step.kind !== 'run' && !asked)
      throw invalid('a question of a step that asks nothing');
    const signIn = asked && 'signIn' in asked ? asked.signIn : undefined;
    const output = signIn
      ? status(journal.turn, TaskState.TASK_STATE_AUTH_REQUIRED, signInParts(signIn.reason, signIn.offer))
      : inputRequired(journal.turn, this.questionParts(step, question));
    const wakes = [wakeInMs, signIn?.offer.forMs].filter((ms) => ms !== undefined);
    if (wakes.length > 0) journal.turn.log.wakeIn(timeOf(Math.min(...wakes), STEP_LIMITS.sleepMs));
    const isOnly = this.journal.openQuestions().every((each) => each === step);
    if (wakes.length === 0 && isOnly) return output;
    await journal.append({ event: 'posed', id });
    journal.posedByRun += 1;
    return journal.posedByRun === 1 ? output : withOwnId(output, journal.posedByRun);
  }

  private questionParts(step: OpenStep, question: unknown[]): Part[] {
    const { question: asked, kind } = step;
    if (asked && 'cap' in asked)
      return capQuestion(approvalIdOf(this.journal, step), asked.cap, asked.problem);
    if (asked && 'approvals' in asked) return approvalRequest(asked.approvals, asked.problem);
    return kind === 'run' ? outcomeQuestion(step, this.journal.keyOf(step)) : partsOf(question);
  }

  /** The code has continued without an answer, and ends its turn with a question of its own: the next message answers that one. */
  async dropQuestions(): Promise<void> {
    const error = { name: 'Error', message: 'the agent has gone on without the answer' };
    const dropped = this.journal.openQuestions().filter(({ asked }) => asked !== undefined);
    for (const step of dropped) await this.journal.end(step, { error });
  }

  /** Stores this turn's message as the answer to the question with which the turn before has ended. */
  async takeAnswer(id: number): Promise<void> {
    const { journal } = this;
    journal.apply(await journal.append(this.answerTo(journal.openStep(id))));
    // The turn before has ended with the question, after all that it had published.
    journal.isExact = true;
  }

  private answerTo(step: OpenStep) {
    const { id, kind } = step;
    const { turn } = this.journal;
    if (kind === 'run') return { event: 'answered', id, answer: outcomeAnswer(turn.message) } as const;
    if (kind === 'tool' || kind === 'model')
      return { event: 'answered', id, ...this.answerOf(step) } as const;
    const details = detailsToJson(turn.details);
    const saysSomething = Object.keys(details).length > 0;
    const answer = historyBefore(turn).length;
    return { event: 'ended', id, answer, ...(saysSomething && { details }) } as const;
  }

  /** The answer in this turn's message about a model or tool call. */
  private answerOf(step: OpenStep): Omit<OutcomeAnswered, keyof EntryHead | 'event'> {
    const { message } = this.journal.turn;
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
    const { message } = this.journal.turn;
    const callId = approvalIdOf(this.journal, step);
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
}

/** The id of what a person is asked. Each question about a cap is one of its own. */
export function approvalIdOf(journal: JournaledSteps, step: OpenStep): string {
  return step.cap ? `${journal.callIdOf(step)}-cap-${step.capsAsked ?? 1}` : journal.callIdOf(step);
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
