import { allowedMicros } from '../../llm/approval/cap-question.js';
import type { ModelPiece } from '../model-protocol.js';
import type { StepReply } from '../step-protocol.js';
import type { TurnModels } from '../turn-models.js';
import type { OpenStep } from './open-step.js';
import type { JournaledSteps } from './journaled-steps.js';
import { approvalIdOf } from './step-questions.js';

/**
 * Calls the model, unless the journal has its answer. It does not end the step: the process of the agent does, so that its earlier events
 * are in the log before.
 * @param request JSON of the call, as the process of the agent sent it
 * @param onPiece called with the text of the answer as it arrives
 * @returns the answer, a failure, or that a person is asked because a spending cap is reached
 */
export async function callModel(
  journal: JournaledSteps,
  models: Pick<TurnModels, 'allow' | 'call' | 'check'>,
  step: OpenStep,
  request: string,
  signal: AbortSignal,
  onPiece: ((piece: ModelPiece) => void) | undefined,
): Promise<StepReply> {
  const { turn } = journal;
  if (step.called?.kind === 'step') return models.check(turn, request, step.called);
  const { cap: reachedCap, decision, problem } = step;
  if (reachedCap && !decision) {
    step.question = { cap: reachedCap, ...(problem !== undefined && { problem }) };
    return { asks: true };
  }
  if (reachedCap && !decision?.approved) {
    const message = `${reachedCap.reason} A person has refused more: ${decision?.reason ?? 'no'}`;
    return { failed: { name: 'TokensExceeded', message } };
  }
  if (reachedCap && decision) {
    const allowed = { ...reachedCap, micros: allowedMicros(reachedCap, decision) };
    await models.allow(turn, allowed, `${turn.task.id}/${approvalIdOf(journal, step)}`, signal);
  }
  const reply = await models.call(turn, request, {
    signal,
    spent: () => journal.spentByRun,
    ...(onPiece && { onPiece }),
    keep: (call, record) => journal.note({ event: 'called', id: step.id, ...call }, record),
  });
  if (!('cap' in reply)) return reply;
  step.question = { cap: reply.cap };
  return { asks: true };
}
