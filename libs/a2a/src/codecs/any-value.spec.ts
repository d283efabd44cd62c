import fc from 'fast-check';
import { shortened } from '../shortened.js';
import type { Message, Part } from '../model.js';
import { ORLOJ_PROFILE } from '../profiles/orloj.js';
import { refusalOf } from '../../../../test/support/a2a/profile.js';
import { sampleTask } from '../../../../test/support/a2a/samples.js';
import {
  anyMessage,
  anySpelling,
  base64Of,
  type Spelling,
  spelled,
  withFault,
} from '../../../../test/support/a2a/wire-values.js';
import { answerJson } from '../well-formed.js';
import type { Codec } from './codec.js';
import { WRAPPED_DATA } from './params.js';
import { V0_3_HTTP_CODEC } from './v0_3-http.js';
import { V0_3_CODEC } from './v0_3.js';
import { V1_0_CODEC, V1_0_HTTP_CODEC } from './v1_0.js';

type Json = Record<string, unknown>;
type WritePart = (part: Part, spelling: Spelling) => Json;

const rawOf = ({ content }: Part, spelling: Spelling): string | undefined =>
  content?.$case === 'raw' ? base64Of(content.value, spelling) : undefined;

const writeV1Part: WritePart = (part, spelling) => {
  const { content, metadata, filename, mediaType } = part;
  const written = spelled(
    {
      text: content?.$case === 'text' ? content.value : undefined,
      raw: rawOf(part, spelling),
      url: content?.$case === 'url' ? content.value : undefined,
      filename: filename || undefined,
      mediaType: mediaType || undefined,
      metadata,
    },
    spelling,
  );
  return content?.$case === 'data' ? { ...written, data: content.value } : written;
};

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Data of 0.3 are objects. Others travel in one. */
const dataOf = (value: unknown, metadata: Json | undefined): { data: Json; metadata: Json | undefined } =>
  isObject(value)
    ? { data: value, metadata }
    : { data: { value }, metadata: { ...metadata, [WRAPPED_DATA]: true } };

const writeV03Part =
  (discriminator: 'kind' | 'type'): WritePart =>
  (part, spelling) => {
    const { content, metadata, filename, mediaType } = part;
    if (content?.$case === 'text')
      return spelled({ [discriminator]: 'text', text: content.value, metadata }, spelling);
    if (content?.$case === 'data') {
      const said =
        discriminator === 'kind' ? dataOf(content.value, metadata) : { data: content.value, metadata };
      return { [discriminator]: 'data', ...said };
    }
    const place = content?.$case === 'url' ? { uri: content.value } : { bytes: rawOf(part, spelling) };
    const file = spelled(
      { ...place, name: filename || undefined, mimeType: mediaType || undefined },
      spelling,
    );
    return spelled({ [discriminator]: 'file', file, metadata }, spelling);
  };

const writeV03HttpPart: WritePart = (part, spelling) => {
  const { content, metadata, filename, mediaType } = part;
  if (content?.$case === 'text') return spelled({ text: content.value, metadata }, spelling);
  if (content?.$case === 'data') {
    const said = dataOf(content.value, metadata);
    return spelled({ data: { data: said.data }, metadata: said.metadata }, spelling);
  }
  const place =
    content?.$case === 'url' ? { fileWithUri: content.value } : { fileWithBytes: rawOf(part, spelling) };
  const file = spelled({ ...place, name: filename || undefined, mimeType: mediaType || undefined }, spelling);
  return spelled({ file, metadata }, spelling);
};

interface Dialect {
  codec: Codec;
  send: string;
  role: string;
  parts: 'parts' | 'content';
  writePart: WritePart;
}

const orloj = ORLOJ_PROFILE.codecFor('tasks/send')!;
const DIALECTS: [string, Dialect][] = [
  [
    '1.0 over JSON-RPC',
    { codec: V1_0_CODEC, send: 'SendMessage', role: 'ROLE_USER', parts: 'parts', writePart: writeV1Part },
  ],
  [
    '1.0 over HTTP+JSON',
    {
      codec: V1_0_HTTP_CODEC,
      send: 'SendMessage',
      role: 'ROLE_USER',
      parts: 'parts',
      writePart: writeV1Part,
    },
  ],
  [
    '0.3 over JSON-RPC',
    {
      codec: V0_3_CODEC,
      send: 'message/send',
      role: 'user',
      parts: 'parts',
      writePart: writeV03Part('kind'),
    },
  ],
  [
    '0.3 over HTTP+JSON',
    {
      codec: V0_3_HTTP_CODEC,
      send: 'message/send',
      role: 'ROLE_USER',
      parts: 'content',
      writePart: writeV03HttpPart,
    },
  ],
  [
    '0.1',
    { codec: orloj, send: 'tasks/send', role: 'user', parts: 'parts', writePart: writeV03Part('type') },
  ],
];

/** The text of a request, as a client sends it. */
function requestOf(message: Message, { role, parts, writePart, send }: Dialect, spelling: Spelling): Json {
  const written = spelled(
    {
      messageId: message.messageId,
      contextId: message.contextId,
      taskId: undefined,
      role,
      metadata: message.metadata,
    },
    spelling,
  );
  const params = { message: { ...written, [parts]: message.parts.map((part) => writePart(part, spelling)) } };
  const request = send === 'tasks/send' ? { id: 't', ...params } : params;
  return JSON.parse(JSON.stringify(request)) as Json;
}

/** The message that a codec reads. */
function read({ codec, send }: Dialect, params: unknown): Message {
  const call = codec.decode(send, params);
  if (call.operation !== 'sendMessage') throw new Error(call.operation);
  return call.request.message!;
}

describe.each(DIALECTS)('%s', (_name, dialect) => {
  const { codec, role, parts: partsName } = dialect;

  it('reads every value that the specification allows, however it is spelled', () => {
    fc.assert(
      fc.property(anyMessage, anySpelling, (message, spelling) => {
        const { parts, metadata } = read(dialect, requestOf(message, dialect, spelling));
        expect({ parts, metadata }).toEqual({ parts: message.parts, metadata: message.metadata });
      }),
      { numRuns: 300 },
    );
  });

  it('writes it so that it reads the same again', () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const task = JSON.parse(
          answerJson(codec.encodeResult('getTask', sampleTask({ history: [message] }))),
        ) as {
          history: Json[];
        };
        const [written] = task.history;
        const again = read(dialect, { id: 't', message: { messageId: 'm', ...written, role } });
        expect(written).toHaveProperty(partsName);
        if (codec !== orloj) expect(again.parts).toEqual(message.parts);
        // 0.1 has no files, and joins texts.
        else expect(again.parts.every(({ content }) => content !== undefined)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('refuses any other by its field', () => {
    fc.assert(
      fc.property(anyMessage, anySpelling, fc.nat(), (message, spelling, pick) => {
        const { json, field } = withFault(requestOf(message, dialect, spelling), pick);
        expect(refusalOf(() => codec.decode(dialect.send, json))).toBe(shortened(field, 200));
      }),
      { numRuns: 300 },
    );
  });
});
