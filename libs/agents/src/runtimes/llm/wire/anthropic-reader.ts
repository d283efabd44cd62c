import { isJsonObject, type JsonObject } from '@baton/a2a';
import { BrokenAnswer } from '../broken-answer.js';
import type { AnswerReader } from './answer-reader.js';
import { numbersOf, objectOf, textOf } from './json.js';

/** The blocks that are passed on, each with its deltas and the member of a delta that has its text. */
const BLOCKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  text: { text_delta: 'text' },
  thinking: { thinking_delta: 'thinking', signature_delta: 'signature' },
  redacted_thinking: {},
  tool_use: { input_json_delta: 'partial_json' },
};

const DELTAS = new Set(Object.values(BLOCKS).flatMap((deltas) => Object.keys(deltas)));

/** Reads Anthropic's messages. Anthropic adds events and blocks, and asks clients to ignore unknown ones. */
export class AnthropicReader implements AnswerReader {
  state: AnswerReader['state'] = 'open';
  /** Types of the blocks that are open, by index. */
  private readonly open = new Map<number, string>();
  /** Indexes of the blocks that are left out. */
  private readonly ignored = new Set<number>();

  read(event: JsonObject): JsonObject[] {
    const index = typeof event.index === 'number' ? event.index : -1;
    switch (event.type) {
      case 'message_start':
        return [{ type: event.type, message: startOf(objectOf(event.message)) }];
      case 'content_block_start':
        return this.start(index, objectOf(event.content_block));
      case 'content_block_delta':
        return this.delta(index, objectOf(event.delta));
      case 'content_block_stop':
        return this.open.delete(index) ? [{ type: event.type, index }] : [];
      case 'message_delta':
        return this.end(objectOf(event.delta), event.usage);
      case 'message_stop':
        this.state = 'over';
        return [...this.stops(), { type: event.type }];
      default:
        return [];
    }
  }

  close(): JsonObject[] {
    return this.state === 'finished' ? [...this.stops(), { type: 'message_stop' }] : [];
  }

  private start(index: number, block: JsonObject): JsonObject[] {
    const type = textOf(block.type) ?? '';
    if (!Object.hasOwn(BLOCKS, type)) {
      this.ignored.add(index);
      return [];
    }
    this.open.set(index, type);
    return [{ type: 'content_block_start', index, content_block: blockOf(type, block) }];
  }

  private delta(index: number, delta: JsonObject): JsonObject[] {
    const type = textOf(delta.type) ?? '';
    const block = this.open.get(index);
    if (block === undefined && !this.ignored.has(index) && DELTAS.has(type)) {
      throw new BrokenAnswer('it sent a part of a block that is not open');
    }
    const member = BLOCKS[block ?? '']?.[type];
    const text = member === undefined ? undefined : textOf(delta[member]);
    if (member === undefined || text === undefined) return [];
    return [{ type: 'content_block_delta', index, delta: { type, [member]: text } }];
  }

  private end(delta: JsonObject, usage: unknown): JsonObject[] {
    const reason = textOf(delta.stop_reason);
    if (reason !== undefined) this.state = 'finished';
    const counted = { output_tokens: 0, ...numbersOf(usage) };
    return [{ type: 'message_delta', delta: { stop_reason: reason }, usage: counted }];
  }

  /** Ends texts that the provider has not ended. A call that has not ended may lack a part. */
  private stops(): JsonObject[] {
    const texts = [...this.open].filter(([, type]) => type !== 'tool_use');
    this.open.clear();
    return texts.map(([index]) => ({ type: 'content_block_stop', index }));
  }
}

function startOf({ id, model, usage }: JsonObject): JsonObject {
  return {
    id: textOf(id),
    model: textOf(model),
    role: 'assistant',
    usage: { input_tokens: 0, ...numbersOf(usage) },
  };
}

function blockOf(type: string, block: JsonObject): JsonObject {
  switch (type) {
    case 'text':
      return { type, text: textOf(block.text) ?? '' };
    case 'thinking':
      return { type, thinking: textOf(block.thinking) ?? '' };
    case 'redacted_thinking':
      return { type, data: textOf(block.data) ?? '' };
    default: {
      const { id, name, input } = block;
      return { type, id: textOf(id) ?? '', name: textOf(name) ?? '', ...(isJsonObject(input) && { input }) };
    }
  }
}
