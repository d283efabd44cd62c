import { type Message, type Part, textOf } from '@baton/a2a';
import { isSentByAgent } from '../../../approvals.js';
import { jsonPart, plainTextPart } from '../../../agent-runtime.js';
import { type OutcomeAnswer, type RecordedStep, STEP_LIMITS } from '../step-protocol.js';

const requestedSchema = {
  type: 'object',
  properties: { done: { type: 'boolean', title: 'It was carried out' } },
  required: ['done'],
};

/** Asks a person for the outcome of a step whose process has died. Only the system that the step changes has it. */
export function outcomeQuestion({ name, answer }: RecordedStep, key: string): Part[] {
  const lines = [
    ...(answer && 'problem' in answer ? [answer.problem] : []),
    `It is not known whether the step "${name}" was carried out: its process ended while it ran.`,
    `Look at the system that it changes. Its effect key is ${key}.`,
    'Answer yes if it was carried out, or no to run it again.',
    'To give it a result, answer with the data part {"done": true, "result": <JSON>}.',
  ];
  return [
    plainTextPart(lines.join('\n')),
    jsonPart({ unknownOutcome: { step: name, key }, requestedSchema }),
  ];
}

const YES = /^(y|yes|done|it was|it was done)$/;
const NO = /^(n|no|not done|it was not|run it again)$/;

/** A caller's answer about an unknown outcome. A data part wins over the text. */
export function outcomeAnswer(message: Message): OutcomeAnswer {
  if (isSentByAgent(message)) return { problem: 'Only a person can answer this, and not an agent.' };
  const [data] = message.parts.flatMap(({ content }) =>
    content?.$case === 'data' && hasDone(content.value) ? [content.value] : [],
  );
  if (data) {
    const { done, result } = data;
    const json = result === undefined ? undefined : JSON.stringify(result);
    if (json !== undefined && Buffer.byteLength(json) > STEP_LIMITS.resultBytes)
      return { problem: `The result has more than ${STEP_LIMITS.resultBytes} bytes.` };
    if (json !== undefined && !done) return { problem: 'A step that was not carried out has no result.' };
    return { done, ...(json !== undefined && { result: json }) };
  }
  const words = textOf(message.parts)
    .toLowerCase()
    .replace(/[^\p{L}]+/gu, ' ')
    .trim();
  if (YES.test(words)) return { done: true };
  return NO.test(words) ? { done: false } : { problem: 'That is neither yes nor no.' };
}

const hasDone = (value: unknown): value is { done: boolean; result?: unknown } =>
  typeof (value as { done?: unknown } | null)?.done === 'boolean';
