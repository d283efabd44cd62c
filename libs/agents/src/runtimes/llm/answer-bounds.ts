import type { TextStreamPart, ToolSet } from 'ai';
import { AgentFailure } from './agent-failure.js';

/** What one answer of a model may have, in characters and calls. Far more than any model says at once. */
const MAX_TEXT = 2_000_000;
const MAX_REASONING = 2_000_000;
const MAX_INPUT = 1_000_000;
const MAX_CALLS = 128;

/**
 * Passes the parts of an answer on until there is too much of it.
 * @throws AgentFailure that says of what
 */
export async function* boundedAnswer(
  parts: AsyncIterable<TextStreamPart<ToolSet>>,
): AsyncGenerator<TextStreamPart<ToolSet>> {
  const said = { text: 0, reasoning: 0, streamed: 0, input: 0, calls: 0 };
  for await (const part of parts) {
    if (part.type === 'text-delta') said.text += part.text.length;
    else if (part.type === 'reasoning-delta') said.reasoning += part.text.length;
    else if (part.type === 'tool-input-delta') said.streamed += part.delta.length;
    else if (part.type === 'tool-call') {
      said.calls += 1;
      said.input += lengthOf(part.input);
    }
    assertWithin(said.text, MAX_TEXT, 'characters');
    assertWithin(said.reasoning, MAX_REASONING, 'characters of reasoning');
    assertWithin(Math.max(said.streamed, said.input), MAX_INPUT, 'characters as input of tools');
    assertWithin(said.calls, MAX_CALLS, 'calls of tools');
    yield part;
  }
}

const lengthOf = (input: unknown): number =>
  typeof input === 'string' ? input.length : JSON.stringify(input ?? null).length;

function assertWithin(count: number, max: number, what: string): void {
  if (count <= max) return;
  throw new AgentFailure(
    `The model's answer has more than ${max} ${what}: ask for less, or set maxOutputTokens of the agent's settings.`,
    { limit: 'modelAnswer' },
  );
}
