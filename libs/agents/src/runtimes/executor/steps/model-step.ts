import { allowedMicros } from '../../llm/approval/cap-question.js';
import type { ModelPiece } from '../model-protocol.js';
import type { StepReply } from '../step-protocol.js';
import type { TurnModels } from '../turn-models.js';
import type { OpenStep } from './open-step.js';
import type { JournaledSteps } from './journaled-steps.js';
import { approvalIdOf } from './step-questions.js';

/** Asks the model, unless it has answered before. The process ends the step, so that all it published before is in the log then. */
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
