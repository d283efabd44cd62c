import type { Conversation } from './conversation.js';
import { readByModel } from './conversation-messages.js';
import { textOfStep } from './llm-entry.js';
import { callIdOf } from './recorded-call.js';
import { textOfResult } from './result-output.js';

/** A piece of the conversation as text. */
export interface Passage {
  head: string;
  text: string;
}

/**
 * The conversation up to the results of a step, as text.
 * @param textOf the text of the message at an index of the task's history
 */
export function passagesUpTo(
  conversation: Conversation,
  steps: number,
  textOf: (at: number) => string,
): Passage[] {
  const summary = conversation.summary();
  const passages: Passage[] = summary ? [{ head: 'Summary of what was before', text: summary.text }] : [];
  let step = 0;
  for (const entry of conversation.recorded()) {
    if (step >= steps) break;
    const isNew = step >= (summary?.steps ?? 0);
    if (entry.kind === 'step') step += 1;
    if (!isNew) continue;
    if (entry.kind === 'asked') passages.push({ head: 'User', text: textOf(entry.at) });
    if (entry.kind === 'correction') passages.push({ head: 'Correction by the platform', text: entry.text });
    if (entry.kind !== 'step') continue;
    passages.push({ head: 'Agent', text: textOfStep(entry) });
    for (const call of conversation.callsOf(step)) {
      const id = callIdOf(call);
      const result = readByModel(conversation, call);
      passages.push(
        { head: `Call ${id} of ${call.toolName}`, text: JSON.stringify(call.input ?? {}) },
        { head: `Result of ${id}${result.ok ? '' : ' (failed)'}`, text: textOfResult(result) },
      );
    }
  }
  return passages.filter(({ text }) => text.trim() !== '');
}
