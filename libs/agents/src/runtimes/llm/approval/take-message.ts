import { isSentByAgent } from '../../../approvals.js';
import type { Turn } from '../../../runtime.js';
import type { Conversation } from '../conversation.js';
import { readAnswer } from './approval-answer.js';

/**
 * Take this turn's message in, unless an earlier attempt has done so: as the answer about calls that wait for
 * approval, or else as a prompt. Only a person approves calls; what an agent says about them is no answer.
 * @returns why it is no answer, where one is waited for
 */
export async function takeMessage(turn: Turn, conversation: Conversation): Promise<string | undefined> {
  if (conversation.hasAnswered()) return undefined;
  const waiting = conversation.undecided();
  if (waiting.length === 0) {
    await conversation.begin();
    return undefined;
  }
  if (isSentByAgent(turn.message)) return 'Only a person can answer this, and not an agent.';
  const { decisions, problem } = readAnswer(turn.message, conversation.askedAbout(), waiting);
  if (problem === undefined) await conversation.add({ kind: 'answered', decisions });
  return problem;
}
