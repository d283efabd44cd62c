import { randomUUID } from 'node:crypto';
import http from 'node:http';

/** A header that is `undefined` is not sent. */
export type Headers = Record<string, string | undefined>;

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at the wire, which has no types
export type Wired = any;

export interface WireRequest {
  method: string;
  path: string;
  headers: Headers;
  /** Sent as it is; an object is sent as its JSON. */
  body?: string | object;
}

/** An id for a message that is a new one, however often the same is said. Golden transcripts show it as `<prefix>-1`. */
export const freshId = (prefix = 'm'): string => `${prefix}-${randomUUID()}`;

/** One server-sent event, or a comment. */
export interface SseRecord {
  event?: string;
  id?: string;
  data?: Wired;
  comment?: string;
}

/** A whole answer, with the request it is the answer to. */
export interface Answer {
  request: WireRequest;
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
  readonly json: Wired;
  /** The events of a stream, without comments. */
  readonly records: SseRecord[];
}

/** Called with each event of a stream and its number from 1, while the stream is open; `false` cuts it. */
export type Watch = (record: SseRecord, number: number) => Promise<unknown>;

/**
 * Send a request byte for byte and read its answer to the end.
 * @param agent keeps connections; default: a new one for each request
 */
export async function exchange(
  base: string,
  request: WireRequest,
  watch?: Watch,
  agent: http.Agent | false = false,
): Promise<Answer> {
  const response = await open(base, request, agent);
  let text = '';
  let parsed = 0;
  let number = 0;
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk as string;
    for (let end = text.indexOf('\n\n', parsed); watch && end >= 0; end = text.indexOf('\n\n', parsed)) {
      const record = parseRecord(text.slice(parsed, end));
      parsed = end + 2;
      if (record.comment !== undefined && record.data === undefined) continue;
      if ((await watch(record, ++number)) === false) {
        response.destroy();
        return answerOf(request, response, text.slice(0, parsed));
      }
    }
  }
  return answerOf(request, response, text);
}

const answerOf = (request: WireRequest, response: http.IncomingMessage, text: string): Answer => ({
  request,
  status: response.statusCode ?? 0,
  headers: response.headers,
  text,
  get json() {
    return JSON.parse(text);
  },
  get records() {
    const records = text.split('\n\n').filter(Boolean).map(parseRecord);
    return records.filter(({ data }) => data !== undefined);
  },
});

function open(
  base: string,
  { method, path, headers, body }: WireRequest,
  agent: http.Agent | false,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = Object.entries(headers).filter(
      (header): header is [string, string] => header[1] !== undefined,
    );
    const options = { method, headers: Object.fromEntries(sent), agent };
    const request = http.request(base + path, options, resolve);
    request.on('error', reject);
    request.end(typeof body === 'object' ? JSON.stringify(body) : body);
  });
}

function parseRecord(text: string): SseRecord {
  const record: SseRecord = {};
  for (const line of text.split('\n')) {
    const [, field, value] = /^(\w*): ?(.*)$/.exec(line) ?? [];
    if (field === 'data') record.data = JSON.parse(value!);
    else if (field === '') record.comment = value!;
    else if (field === 'event' || field === 'id') record[field] = value!;
  }
  // A heartbeat just before an event is no part of it.
  if (record.data !== undefined) delete record.comment;
  return record;
}
