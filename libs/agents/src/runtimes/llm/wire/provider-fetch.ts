import { isJsonObject, type ModelApi, parseBoundedJson } from '@baton/a2a';
import type { Fetch } from '@baton/outbound';
import { within } from '@baton/telemetry';
import { createParser } from 'eventsource-parser';
import { restOfBeginning } from '../../../outbound/beginning-of.js';
import { wellFormedRequest } from '../../../outbound/well-formed-request.js';
import { BrokenAnswer } from '../broken-answer.js';
import { AnthropicReader } from './anthropic-reader.js';
import type { AnswerReader } from './answer-reader.js';
import { ChatReader } from './chat-reader.js';
import { GoogleReader } from './google-reader.js';
import { ProviderError } from './provider-error.js';
import { MAX_ERROR_BODY, complaintOf, complaintOfEvent } from './provider-complaint.js';
import { ResponsesReader } from './responses-reader.js';

type AnswerSource = ReadableStreamDefaultReader<Uint8Array>;

const READERS: Readonly<Record<ModelApi, new () => AnswerReader>> = {
  chat: ChatReader,
  responses: ResponsesReader,
  anthropic: AnthropicReader,
  google: GoogleReader,
};

/** How long a connection may stay open after the last event, in ms. A connection whose answer ends within this time is used again. */
const OVER_MS = 100;
/** How long to wait for usage after the reason of the end, in ms. */
const FINISHED_MS = 500;

/**
 * Wraps the fetch for a model provider, whose answers the AI SDK reads too strictly. It
 * - leaves out events that are unknown to the SDK;
 * - ends an answer at its last event, also if the connection stays open;
 * - sends well-formed Unicode: providers refuse half of a surrogate pair, which the result of a tool may have;
 * - rejects with ProviderError, or fails the body with it, if the provider answers with an error, within a stream too.
 *
 * @param api the interface of the provider
 */
export function providerFetch(fetch: Fetch, api: ModelApi): Fetch {
  return async (input, init) => {
    const response = await fetch(input, wellFormedRequest(init));
    const { status, headers } = response;
    const source = response.body?.getReader();
    const start = await beginning(source, !response.ok);
    if (!response.ok || !source || start.isDocument) {
      throw new ProviderError(complaintOf(status, headers, await documentOf(start.bytes, source)));
    }
    return new Response(answerBody(source, start.bytes, new READERS[api]()), { status, headers });
  };
}

/** Reads up to the first character of the body: streams of events begin with a letter or a colon. */
async function beginning(source: AnswerSource | undefined, isDocument: boolean) {
  const bytes: Uint8Array[] = [];
  while (source && !isDocument) {
    const { done, value } = await source.read();
    if (done) break;
    bytes.push(value);
    const first = /[^\s\uFEFF]/.exec(Buffer.from(value).toString('utf8'))?.[0];
    if (first !== undefined) return { bytes, isDocument: '{[<"'.includes(first) };
  }
  return { bytes, isDocument };
}

/** The beginning of a document: a provider may leave its connection open. */
async function documentOf(bytes: readonly Uint8Array[], source: AnswerSource | undefined): Promise<string> {
  if (!source) return '';
  const beginning = await restOfBeginning(bytes, source, MAX_ERROR_BODY);
  return beginning.toString('utf8');
}

/** The events of an answer, as its reader passes them on. */
function answerBody(
  source: AnswerSource,
  start: readonly Uint8Array[],
  reader: AnswerReader,
): ReadableStream<Uint8Array> {
  const chunks = chunksOf(source, start, () => reader.state);
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let parts: object[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (reader.state !== 'over' && data.trim() !== '') parts.push(...partsOf(reader, event, data));
    },
  });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await chunks.next();
          try {
            parser.feed(done ? decoder.decode() + '\n\n' : decoder.decode(value, { stream: true }));
          } catch (error) {
            void source.cancel().catch(() => undefined);
            throw error;
          }
          if (done) parts.push(...reader.close());
          const text = parts.map((part) => `data: ${JSON.stringify(part)}\n\n`).join('');
          parts = [];
          if (text !== '') controller.enqueue(encoder.encode(text));
          if (done) controller.close();
          if (done || text !== '') return;
        }
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

function partsOf(reader: AnswerReader, name: string | undefined, data: string): object[] {
  if (data.trim() === '[DONE]') {
    reader.state = 'over';
    return [];
  }
  // The outbound guard bounds each event.
  const event = parseBoundedJson(data);
  // Failures after a complete answer do not matter.
  const isComplete = reader.state !== 'open';
  if (event === undefined && !isComplete) throw new BrokenAnswer('it sent an event that is not JSON');
  if (!isJsonObject(event)) return [];
  const complaint = complaintOfEvent(event, name);
  if (!complaint) return reader.read(event);
  if (isComplete) return [];
  throw new ProviderError(complaint);
}

/** The pieces of a body, up to the end of the answer or of the connection. */
async function* chunksOf(
  source: AnswerSource,
  start: readonly Uint8Array[],
  state: () => AnswerReader['state'],
): AsyncGenerator<Uint8Array, undefined> {
  yield* start;
  for (;;) {
    const wait = state() === 'over' ? OVER_MS : state() === 'finished' ? FINISHED_MS : undefined;
    // When the answer is complete, a connection that breaks has ended.
    const read = state() === 'open' ? source.read() : source.read().catch(() => undefined);
    const next = await (wait === undefined ? read : within(read, wait));
    if (next === undefined || next.done) break;
    yield next.value;
  }
  void source.cancel().catch(() => undefined);
}
