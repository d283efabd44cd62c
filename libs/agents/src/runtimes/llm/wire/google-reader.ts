import { isJsonObject, type JsonObject } from '@baton/a2a';
import type { AnswerReader } from './answer-reader.js';
import { numbersOf, objectOf, objectsOf, textOf } from './json.js';

/** Reads Google's generateContent. */
export class GoogleReader implements AnswerReader {
  state: AnswerReader['state'] = 'open';

  read(chunk: JsonObject): JsonObject[] {
    const candidate = objectsOf(chunk.candidates).find(({ index = 0 }) => index === 0 || index === null);
    const usageMetadata = numbersOf(chunk.usageMetadata);
    const blockReason = textOf(objectOf(chunk.promptFeedback).blockReason);
    if (!candidate && !usageMetadata && blockReason === undefined) return [];
    if (blockReason !== undefined || textOf(candidate?.finishReason)) this.state = 'finished';
    return [
      {
        responseId: textOf(chunk.responseId),
        candidates: candidate && [candidateOf(candidate)],
        usageMetadata,
        ...(blockReason !== undefined && { promptFeedback: { blockReason } }),
      },
    ];
  }

  close(): JsonObject[] {
    return [];
  }
}

function candidateOf({ content, finishReason, finishMessage, continuationToken }: JsonObject): JsonObject {
  const parts = objectsOf(objectOf(content).parts).flatMap(partOf);
  return {
    ...(parts.length > 0 && { content: { parts } }),
    finishReason: textOf(finishReason),
    finishMessage: textOf(finishMessage),
    continuationToken: textOf(continuationToken),
  };
}

/** Texts, calls and files. Other parts are left out: Baton uses no tools of Google. */
function partOf(part: JsonObject): JsonObject[] {
  const thoughtSignature = textOf(part.thoughtSignature);
  const signed = thoughtSignature === undefined ? {} : { thoughtSignature };
  if (isJsonObject(part.functionCall)) {
    const { id, name, args, partialArgs, willContinue } = part.functionCall;
    const call = { id: textOf(id), name: textOf(name), args };
    const streamed = {
      ...(Array.isArray(partialArgs) && { partialArgs: objectsOf(partialArgs) }),
      ...(typeof willContinue === 'boolean' && { willContinue }),
    };
    return [{ functionCall: { ...call, ...streamed }, ...signed }];
  }
  if (isJsonObject(part.inlineData)) return [part];
  const text = textOf(part.text);
  if (text === undefined && thoughtSignature === undefined) return [];
  return [{ text: text ?? '', ...(part.thought === true && { thought: true }), ...signed }];
}
