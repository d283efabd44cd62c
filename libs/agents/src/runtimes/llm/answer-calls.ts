import { messageOf } from '@baton/telemetry';
import { describeExcess, isJsonObject, jsonExcess } from '@baton/a2a';
import type { TextStreamPart, ToolSet } from 'ai';
import { BrokenAnswer } from './broken-answer.js';
import type { WrongCall } from './wrong-calls.js';

/** Characters of the arguments of a wrong call that are kept from the beginning. */
const MAX_HEAD = 400;
/** Characters that are kept from the end, where JSON that was cut off breaks. */
const MAX_TAIL = 200;
/** Maximum characters of the name of a tool that a model makes up. No tool has a longer one (`tool-list.ts`). */
const MAX_NAME = 128;
/** Maximum characters of the JSON parser's message. */
const MAX_WRONG = 200;

/** A part of a model's answer, as the AI SDK streams it. */
export type AnswerPart = TextStreamPart<ToolSet>;
type ToolCall = Extract<AnswerPart, { type: 'tool-call' }>;

/**
 * Checks the calls of one answer while it arrives. The AI SDK replaces arguments that it cannot parse by `{}`, and no
 * arguments too. So each call is compared with the text that the provider sent.
 */
export class AnswerCalls {
  /** Text of the arguments so far, by the model's id of the call. */
  private readonly written = new Map<string, string>();
  private readonly calls: { call: ToolCall; text: string }[] = [];
  private begun = 0;
  /** Characters of arguments that the provider sent, and that the AI SDK gave to a call. */
  private sent = 0;
  private assigned = 0;

  addPart(part: AnswerPart): void {
    switch (part.type) {
      case 'tool-input-start':
        this.begun += 1;
        this.written.set(part.id, '');
        break;
      case 'tool-input-delta':
        this.assigned += part.delta.length;
        this.written.set(part.id, (this.written.get(part.id) ?? '') + part.delta);
        break;
      case 'tool-call':
        this.calls.push({ call: part, text: this.written.get(part.toolCallId) ?? '' });
        break;
      case 'raw':
        this.sent += argumentsIn(part.rawValue);
        break;
    }
  }

  /** The tools that the answer asks for. */
  tools(): string[] {
    return this.calls.map(({ call }) => call.toolName.slice(0, MAX_NAME));
  }

  /** Throws BrokenAnswer if a call has begun and not ended. */
  assertEnded(): void {
    if (this.begun > this.calls.length) throw new BrokenAnswer('a call of a tool did not end');
  }

  /** The calls that must not be made. */
  wrong(): WrongCall[] {
    const hasLost = this.sent > this.assigned;
    return this.calls.flatMap(({ call, text }) => {
      const wrong = wrongArguments(call, text, hasLost);
      if (wrong === undefined) return [];
      const received = typeof call.input === 'string' ? call.input : text || JSON.stringify(call.input);
      return [
        {
          tool: call.toolName.slice(0, MAX_NAME),
          received: shortened(received),
          wrong: wrong.slice(0, MAX_WRONG),
        },
      ];
    });
  }
}

/**
 * @param text the arguments as they were streamed
 * @param hasLost pieces of arguments came that belong to no call
 */
function wrongArguments({ input }: ToolCall, text: string, hasLost: boolean): string | undefined {
  // The AI SDK leaves the text if it is not JSON. No text at all means no arguments.
  const received = typeof input === 'string' && input.trim() !== '' ? input : text;
  const excess = jsonExcess(received);
  if (excess) return `the JSON ${describeExcess(excess)}`;
  if (typeof input === 'string' && input.trim() !== '') return notAnObject(input);
  if (typeof input !== 'string' && !isJsonObject(input)) return 'they are not a JSON object';
  const isEmpty = typeof input === 'string' || Object.keys(input).length === 0;
  if (!isEmpty) return inexactNumber(text);
  if (hasLost && text.trim() === '') {
    return 'their pieces arrived without the call that they belong to. Make one call at a time';
  }
  return /^\s*(\{\s*\}\s*)?$/.test(text) ? undefined : notAnObject(text);
}

/** Why a text within the bounds is not a JSON object that the AI SDK accepts. */
function notAnObject(text: string): string {
  try {
    // oxlint-disable-next-line no-restricted-properties -- bounded by its caller
    return isJsonObject(JSON.parse(text))
      ? 'they have a key that is not allowed, such as "__proto__", or arrived incomplete'
      : 'they are not a JSON object';
  } catch (error) {
    return `they are not valid JSON: ${messageOf(error)}`;
  }
}

/** Strings, which are skipped, and numbers of a JSON text. */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** An integer that JavaScript would change, such as an id with more than 16 digits. */
function inexactNumber(text: string): string | undefined {
  for (const [token] of text.matchAll(STRING_OR_NUMBER)) {
    if (token.startsWith('"')) continue;
    const value = Number(token);
    const isExact = Number.isFinite(value) && (!/^-?\d+$/.test(token) || BigInt(value) === BigInt(token));
    if (!isExact) return `the number ${token.slice(0, 40)} has too many digits: write it as a string`;
  }
  return undefined;
}

/** Characters of arguments in a chunk of OpenAI's chat completions. The AI SDK drops pieces that fit several calls. */
function argumentsIn(chunk: unknown): number {
  const { choices } = (chunk ?? {}) as { choices?: { delta?: { tool_calls?: unknown } | null }[] | null };
  const deltas: unknown = Array.isArray(choices) ? choices[0]?.delta?.tool_calls : undefined;
  if (!Array.isArray(deltas)) return 0;
  const pieces = (deltas as ({ function?: { arguments?: unknown } | null } | null)[]).map(
    (delta) => delta?.function?.arguments,
  );
  return pieces.reduce((sum: number, piece) => sum + (typeof piece === 'string' ? piece.length : 0), 0);
}

function shortened(text: string): string {
  if (text.length <= MAX_HEAD + MAX_TAIL) return text;
  const cut = text.length - MAX_HEAD - MAX_TAIL;
  return `${text.slice(0, MAX_HEAD)} … (${cut} characters) … ${text.slice(-MAX_TAIL)}`;
}
