import type { Turn } from '../../../runtime.js';
import { type Conversation, callIdOf } from '../conversation.js';
import { readAnswer } from './approval-answer.js';

/**
 * Take this turn's message in, unless an earlier attempt has done so: as the answer about calls that wait for
 * approval, or else as a prompt.
 * @returns why it is no answer, where one is waited for
 */
export async function takeMessage(turn: Turn, conversation: Conversation): Promise<string | undefined> {
  if (conversation.hasAnswered()) return undefined;
  const waiting = conversation.undecidedCalls();
  if (waiting.length === 0) {
    await conversation.begin();
    return undefined;
  }
  const known = conversation.steps().flatMap((_step, i) => conversation.callsOf(i + 1).map(callIdOf));
  const { decisions, problem } = readAnswer(turn.message, known, waiting.map(callIdOf));
  if (problem === undefined) await conversation.add({ kind: 'answered', decisions });
  return problem;
}
