import { isJsonObject, type JsonObject } from '@baton/a2a';
import type { AssistantModelMessage, ProviderMetadata } from 'ai';
import { objectOf, objectsOf, textOf } from './wire/json.js';
import { AgentFailure } from './agent-failure.js';

/** Where the AI SDK takes further members of a message from. */
const MEMBERS = 'openaiCompatible';
/** The member in which a server has sent its reasoning. It is removed before the message is sent. */
const REASONING_MEMBER = 'reasoning_member';
/** Maximum characters that are stored for the provider. */
const MAX_KEPT = 2_000_000;

/**
 * Collects members that a chat server needs back with the next request and that the AI SDK does not read: `reasoning_details`
 * (OpenRouter), signatures of texts (Google), and the name of the member that has the reasoning.
 */
export class ChatMemory {
  private readonly details: JsonObject[] = [];
  private readonly kept: JsonObject = {};
  private size = 0;

  /** @param chunk a chunk of the answer, as ChatReader passes it on */
  processChunk(chunk: unknown): void {
    const delta = objectOf(objectsOf(objectOf(chunk).choices)[0]?.delta);
    const { reasoning_content, reasoning, content, extra_content } = delta;
    const isThinking = Array.isArray(content) && objectsOf(content).some(({ type }) => type === 'thinking');
    const member = textOf(reasoning_content)
      ? 'reasoning_content'
      : textOf(reasoning)
        ? 'reasoning'
        : isThinking && 'content';
    if (member) this.kept[REASONING_MEMBER] = member;
    if (isJsonObject(extra_content)) this.kept.extra_content = extra_content;
    for (const detail of objectsOf(delta.reasoning_details)) this.add(detail);
  }

  /** For the metadata of the answer. */
  buildMetadata(): ProviderMetadata | undefined {
    if (this.details.length > 0) this.kept.reasoning_details = this.details;
    return Object.keys(this.kept).length > 0
      ? { [MEMBERS]: this.kept as ProviderMetadata[string] }
      : undefined;
  }

  /** Joins the pieces of one detail, which arrive one after the other. */
  private add(detail: JsonObject): void {
    this.size += JSON.stringify(detail).length;
    if (this.size > MAX_KEPT) {
      throw new AgentFailure(
        `The model's answer has more than ${MAX_KEPT} characters of reasoning_details: ask for less, or set ` +
          "maxOutputTokens of the agent's settings.",
        { limit: 'modelAnswer' },
      );
    }
    const last = this.details.at(-1);
    if (
      !last ||
      last.type !== detail.type ||
      last.index !== detail.index ||
      last.id !== (detail.id ?? last.id)
    ) {
      this.details.push({ ...detail });
      return;
    }
    for (const [key, value] of Object.entries(detail)) {
      const before = last[key];
      const isPiece = PIECES.has(key) && typeof value === 'string' && typeof before === 'string';
      if (value !== null && value !== undefined) last[key] = isPiece ? before + value : value;
    }
  }
}

/** Members of a detail that arrive in pieces. */
const PIECES = new Set(['text', 'summary', 'data']);

/** The message of an answer with the members that its provider needs back. */
export function withMemory(message: AssistantModelMessage, metadata: unknown): AssistantModelMessage {
  const kept = objectOf(metadata)[MEMBERS];
  if (!isJsonObject(kept)) return message;
  return { ...message, providerOptions: { [MEMBERS]: kept as never } };
}

/** Sends the reasoning of each message back in the member in which it came. */
export function restoreReasoning(body: JsonObject): JsonObject {
  return { ...body, messages: objectsOf(body.messages).map(restored) };
}

function restored(message: JsonObject): JsonObject {
  const { [REASONING_MEMBER]: member, ...rest } = message;
  if (member !== 'reasoning' && member !== 'content') return rest;
  const { reasoning_content: text, ...others } = rest;
  if (typeof text !== 'string') return rest;
  if (member === 'reasoning') return { ...others, reasoning: text };
  const texts = typeof others.content === 'string' ? [{ type: 'text', text: others.content }] : [];
  return { ...others, content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }, ...texts] };
}
