import { isJsonObject, type JsonObject } from '@baton/a2a';
import type { AnswerReader } from './answer-reader.js';
import { jsonTextOf, numberOf, objectOf, objectsOf, textOf } from './json.js';

const ENDS = new Set(['response.completed', 'response.incomplete']);
/** Events of one item of the output. */
const OF_ITEM = new Set([
  'response.output_text.delta',
  'response.refusal.delta',
  'response.refusal.done',
  'response.function_call_arguments.delta',
  'response.function_call_arguments.done',
  'response.reasoning_summary_part.added',
  'response.reasoning_summary_text.delta',
  'response.reasoning_summary_part.done',
]);
const ITEMS = new Set(['message', 'reasoning', 'function_call']);

/** Reads OpenAI's responses. */
export class ResponsesReader implements AnswerReader {
  state: AnswerReader['state'] = 'open';
  /** Ids of the items that are open and passed on, by their position. */
  private readonly items = new Map<number, string>();
  /** Items that have ended. An end that is sent twice must not make a call twice. */
  private readonly ended = new Set<string>();
  /** Positions of the items that have begun. */
  private readonly begun = new Set<number>();

  read(event: JsonObject): JsonObject[] {
    const type = textOf(event.type) ?? '';
    if (ENDS.has(type)) {
      this.state = 'over';
      const response = objectOf(event.response);
      return [...this.missing(objectsOf(response.output)), { ...event, response: endOf(response) }];
    }
    if (type === 'response.created') return [event];
    if (type === 'response.output_item.added') return this.added(event);
    if (type === 'response.output_item.done') return this.done(event);
    if (!OF_ITEM.has(type)) return [];
    const index = numberOf(event.output_index) ?? 0;
    const id = textOf(event.item_id) ?? this.items.get(index);
    return id !== undefined && this.isKnown(id) ? [{ ...event, item_id: id, logprobs: undefined }] : [];
  }

  close(): JsonObject[] {
    return [];
  }

  private added(event: JsonObject): JsonObject[] {
    const whole = this.itemOf(event, 'in_progress');
    if (!whole) return [];
    this.items.set(whole.output_index, whole.item.id);
    this.begun.add(whole.output_index);
    return [whole];
  }

  /** An item that ends without a beginning begins here: the SDK fails otherwise. */
  private done(event: JsonObject): JsonObject[] {
    const whole = this.itemOf(event, 'completed');
    if (!whole) return [];
    const key = `${whole.output_index} ${whole.item.id}`;
    if (this.ended.has(key)) return [];
    this.ended.add(key);
    this.begun.add(whole.output_index);
    const isOpen = this.items.delete(whole.output_index);
    const { item } = whole;
    const start = { ...whole, type: 'response.output_item.added', item: { ...item, status: 'in_progress' } };
    if (item.type === 'function_call') start.item = { ...start.item, arguments: '' } as typeof item;
    return isOpen ? [whole] : [start, whole];
  }

  /** The items that only the end of the response has: some servers send no events of them. */
  private missing(output: readonly JsonObject[]): JsonObject[] {
    return output.flatMap((item, index) => {
      if (this.begun.has(index)) return [];
      const [added, done] = this.done({ type: 'response.output_item.done', output_index: index, item });
      if (!added || !done) return [];
      const texts = objectsOf(item.content).flatMap((part, content_index) => {
        const delta = part.type === 'output_text' ? textOf(part.text) : undefined;
        const at = { item_id: objectOf(added.item).id, output_index: index, content_index };
        return delta ? [{ type: 'response.output_text.delta', ...at, delta }] : [];
      });
      return [added, ...texts, done];
    });
  }

  /** Fills in members that some servers omit. */
  private itemOf(event: JsonObject, status: string) {
    if (!isJsonObject(event.item)) return undefined;
    const { item } = event;
    if (!ITEMS.has(textOf(item.type) ?? '')) return undefined;
    const index = numberOf(event.output_index) ?? this.ended.size;
    const id = textOf(item.id) ?? this.items.get(index) ?? `item_${index}`;
    const call = { call_id: textOf(item.call_id) ?? id, arguments: jsonTextOf(item.arguments) ?? '' };
    const whole = { ...item, type: textOf(item.type), id, status: textOf(item.status) ?? status };
    return {
      ...event,
      output_index: index,
      item: item.type === 'function_call' ? { ...whole, ...call } : whole,
    };
  }

  private isKnown(id: string): boolean {
    return [...this.items.values()].includes(id);
  }
}

/** The end of a response. It repeats the whole answer, which the SDK does not read. */
function endOf({ incomplete_details, usage }: JsonObject): JsonObject {
  return {
    incomplete_details: isJsonObject(incomplete_details) ? incomplete_details : null,
    usage: usageOf(usage),
  };
}

function usageOf(usage: unknown): JsonObject | undefined {
  if (!isJsonObject(usage)) return undefined;
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = usage;
  const [input, output] = [numberOf(input_tokens), numberOf(output_tokens)];
  if (input === undefined || output === undefined) return undefined;
  const cached = numberOf(objectOf(input_tokens_details).cached_tokens);
  const reasoning = numberOf(objectOf(output_tokens_details).reasoning_tokens);
  return {
    input_tokens: input,
    output_tokens: output,
    ...(cached !== undefined && { input_tokens_details: { cached_tokens: cached } }),
    ...(reasoning !== undefined && { output_tokens_details: { reasoning_tokens: reasoning } }),
  };
}
