import { isJsonObject, type JsonObject, parseBoundedJson } from '@baton/a2a';
import { randomUUID } from 'node:crypto';

/** Longest line of a stream that is looked at, in characters. The SDK's client takes no longer event. */
const MAX_LINE = 4 * 1024 * 1024;

/**
 * An answer of A2A 0.3 over JSON-RPC with the members that the SDK's client requires, and many agents leave out: the parts of an
 * artifact or message, the id and role of a message, the kind of a part. The history is left out: nothing reads it.
 * @returns the same text if nothing is missing, or if it is no such answer
 */
export function completeLegacy(text: string): string {
  // The outbound guard bounds answers and events.
  const json = parseBoundedJson(text);
  if (!isJsonObject(json) || !isJsonObject(json.result)) return text;
  const changes = { count: 0 };
  completeResult(json.result, changes);
  return changes.count === 0 ? text : JSON.stringify(json);
}

/** The same for each event of a stream. */
export function completeLegacyEvents(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let rest = '';
  const lines = new TransformStream<string, string>({
    transform(chunk, controller) {
      const all = (rest + chunk).split('\n');
      rest = all.pop() ?? '';
      for (const line of all) controller.enqueue(`${completeLine(line)}\n`);
      if (rest.length <= MAX_LINE) return;
      controller.enqueue(rest);
      rest = '';
    },
    flush(controller) {
      if (rest !== '') controller.enqueue(rest);
    },
  });
  const text = body.pipeThrough(new TextDecoderStream());
  return text.pipeThrough(lines).pipeThrough(new TextEncoderStream());
}

const completeLine = (line: string): string =>
  line.startsWith('data:') ? `data:${completeLegacy(line.slice('data:'.length))}` : line;

/** Number of added members. */
interface Changes {
  count: number;
}

function completeResult(result: JsonObject, changes: Changes): void {
  switch (result.kind) {
    case 'artifact-update':
      return completeArtifact(result.artifact, changes);
    case 'status-update':
      return completeStatus(result.status, changes);
    case 'message':
      return completeMessage(result, changes);
    case 'task':
      if (Array.isArray(result.history)) setField(result, 'history', undefined, changes);
      completeStatus(result.status, changes);
      if (Array.isArray(result.artifacts))
        for (const each of result.artifacts) completeArtifact(each, changes);
  }
}

function completeStatus(status: unknown, changes: Changes): void {
  if (isJsonObject(status)) completeMessage(status.message, changes);
}

function completeArtifact(artifact: unknown, changes: Changes): void {
  if (isJsonObject(artifact)) completeParts(artifact, changes);
}

function completeMessage(message: unknown, changes: Changes): void {
  if (!isJsonObject(message)) return;
  if (typeof message.messageId !== 'string' || message.messageId === '')
    setField(message, 'messageId', randomUUID(), changes);
  if (message.role !== 'agent') setField(message, 'role', 'agent', changes);
  completeParts(message, changes);
}

function completeParts(owner: JsonObject, changes: Changes): void {
  if (!Array.isArray(owner.parts)) return setField(owner, 'parts', [], changes);
  for (const part of owner.parts as unknown[]) {
    if (!isJsonObject(part) || part.kind !== undefined) continue;
    const kind = ['text', 'file', 'data'].find((name) => name in part);
    if (kind !== undefined) setField(part, 'kind', kind, changes);
  }
}

function setField(owner: JsonObject, name: string, value: unknown, changes: Changes): void {
  owner[name] = value;
  changes.count += 1;
}
