import { isJsonObject, type JsonObject } from '@baton/a2a';
import type { AnswerReader } from './answer-reader.js';
import { jsonTextOf, numberOf, numbersOf, objectOf, objectsOf, textOf } from './json.js';

/** Reads chat completions of OpenAI and of servers that are compatible with it. */
export class ChatReader implements AnswerReader {
  state: AnswerReader['state'] = 'open';
  private hasSaid = false;
  private hasReason = false;
  private hasCalls = false;
  private isRefusal = false;

  read(chunk: JsonObject): JsonObject[] {
    const choice = objectsOf(chunk.choices).find(({ index = 0 }) => index === 0 || index === null);
    const usage = numbersOf(chunk.usage);
    if (!choice && !usage) return [];
    const { id, created, model } = chunk;
    const head = { id: textOf(id), created: numberOf(created), model: textOf(model) };
    return [{ ...head, choices: choice ? [this.choiceOf(choice)] : [], ...(usage && { usage }) }];
  }

  /** `[DONE]` ends a text also without a reason. A call may lack a part then. */
  close(): JsonObject[] {
    if (this.state !== 'over' || this.hasReason || this.hasCalls || !this.hasSaid) return [];
    return [{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }];
  }

  private choiceOf(choice: JsonObject): JsonObject {
    const delta = this.deltaOf(objectOf(choice.delta));
    const reason = textOf(choice.finish_reason);
    if (!reason) return { index: 0, delta };
    this.state = 'finished';
    this.hasReason = true;
    return {
      index: 0,
      delta,
      finish_reason: this.isRefusal && reason === 'stop' ? 'content_filter' : reason,
    };
  }

  private deltaOf(delta: JsonObject): JsonObject {
    const { reasoning_content, reasoning, reasoning_details, extra_content } = delta;
    const refusal = textOf(delta.refusal);
    if (refusal) this.isRefusal = true;
    const content = refusal ?? contentOf(delta.content);
    const calls = objectsOf(delta.tool_calls).filter((call) => isJsonObject(call.function));
    this.hasCalls ||= calls.length > 0;
    this.hasSaid ||= Boolean(content);
    return {
      ...(content !== undefined && { content }),
      reasoning_content: textOf(reasoning_content),
      reasoning: textOf(reasoning),
      ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
      // The SDK does not read these. ChatMemory does.
      ...(Array.isArray(reasoning_details) && { reasoning_details: objectsOf(reasoning_details) }),
      ...(isJsonObject(extra_content) && { extra_content }),
    };
  }
}

/** Mistral sends a list of parts, others a text. */
function contentOf(content: unknown): string | JsonObject[] | undefined {
  if (!Array.isArray(content)) return textOf(content);
  return objectsOf(content).filter(({ type }) => typeof type === 'string');
}

function callOf(call: JsonObject): JsonObject {
  const { name, arguments: input } = objectOf(call.function);
  const signature = textOf(objectOf(objectOf(call.extra_content).google).thought_signature);
  return {
    index: numberOf(call.index),
    id: textOf(call.id),
    function: { name: textOf(name), arguments: jsonTextOf(input) },
    ...(signature !== undefined && { extra_content: { google: { thought_signature: signature } } }),
  };
}
