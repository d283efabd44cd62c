import type { TextStreamPart, ToolSet } from 'ai';
import { setTimeout as delay } from 'node:timers/promises';
import { AgentFailure } from './agent-failure.js';

/** Maximum parts of a group, for a source that never waits. */
const MAX_GROUP = 1000;
const DONE = Symbol('done');

/**
 * Groups the parts of a source. The first part is yielded at once, later parts in groups at least `ms` apart. So many
 * small pieces become few events without a noticeable delay.
 */
export async function* grouped<T>(source: AsyncIterable<T>, ms: number): AsyncGenerator<T[]> {
  const parts = source[Symbol.asyncIterator]();
  let next = read(parts);
  let due: Promise<undefined> = Promise.resolve(undefined);
  try {
    for (;;) {
      const first = await next;
      if (first === DONE) return;
      const group = [first.value];
      next = read(parts);
      while (group.length < MAX_GROUP) {
        const part = await Promise.race([next, due]);
        if (part === undefined || part === DONE) break;
        group.push(part.value);
        next = read(parts);
      }
      yield group;
      due = delay(ms, undefined, { ref: false });
    }
  } finally {
    void parts.return?.();
  }
}

/** Reads one part ahead. A failure is kept until the reader asks for the part. */
function read<T>(parts: AsyncIterator<T>): Promise<{ value: T } | typeof DONE> {
  const part = parts.next().then(({ done, value }) => (done ? DONE : { value }));
  part.catch(() => undefined);
  return part;
}

/** Maximum characters of one answer. No model sends a tenth of it. */
const MAX_TEXT = 2_000_000;
/** Maximum characters of its reasoning. */
const MAX_REASONING = 2_000_000;
/** Maximum characters of the arguments of one call. */
const MAX_INPUT = 1_000_000;
/** Maximum calls of one answer. OpenAI takes no more tools than this. */
const MAX_CALLS = 128;

/**
 * Passes on the parts of an answer within the bounds.
 * @throws AgentFailure with the exceeded bound
 */
export async function* boundedAnswer(
  parts: AsyncIterable<TextStreamPart<ToolSet>>,
): AsyncGenerator<TextStreamPart<ToolSet>> {
  const sizes = { text: 0, reasoning: 0, streamed: 0, input: 0, calls: 0 };
  for await (const part of parts) {
    if (part.type === 'text-delta') sizes.text += part.text.length;
    else if (part.type === 'reasoning-delta') sizes.reasoning += part.text.length;
    else if (part.type === 'tool-input-delta') sizes.streamed += part.delta.length;
    else if (part.type === 'tool-call') {
      sizes.calls += 1;
      sizes.input += lengthOf(part.input);
    }
    assertWithin(sizes.text, MAX_TEXT, 'characters');
    assertWithin(sizes.reasoning, MAX_REASONING, 'characters of reasoning');
    assertWithin(Math.max(sizes.streamed, sizes.input), MAX_INPUT, 'characters as input of tools');
    assertWithin(sizes.calls, MAX_CALLS, 'calls of tools');
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
