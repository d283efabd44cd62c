import { GRPC_METHODS } from '@baton/a2a';
import fc from 'fast-check';
import { gzipSync } from 'node:zlib';
import { methodOf } from '../../apps/api/src/grpc/grpc-services.js';
import { encodeMessage } from '../../apps/api/src/grpc/protobuf.js';
import type { Known } from './requests.js';

/** A gRPC call below its library: the path, headers and bytes of an HTTP/2 stream. */
export interface GrpcCase {
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

/** What is done to the bytes of a valid message. */
const ACTS = [
  'keep',
  'keep',
  'cut',
  'double',
  'unknown',
  'flip',
  'insert',
  'groups',
  'empty',
  'random',
] as const;
/** The length in its frame. */
const LENGTHS = ['right', 'right', 'right', 'short', 'long', 'huge', 'none', 'cut'] as const;

const HEALTH = 'grpc.health.v1.Health';
const REFLECTIONS = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

const ODD_HEADERS: readonly (readonly [name: string, values: readonly string[]])[] = [
  [
    'content-type',
    ['application/grpc+proto', 'application/grpc+json', 'application/json', 'application/grpc;x', ''],
  ],
  ['grpc-encoding', ['identity', 'gzip', 'deflate', 'br', 'x'.repeat(2_000)]],
  ['grpc-accept-encoding', ['gzip', 'none', ',,,']],
  ['grpc-timeout', ['0n', '1n', '99999999H', '-1S', 'x', '100000000S', '1S']],
  ['a2a-version', ['1.0', '0.3', '9.9', '', 'x'.repeat(500)]],
  ['a2a-extensions', ['https://a.example', ','.repeat(500)]],
  ['baton-agent', ['echo', 'none', '../x', '%00', 'x'.repeat(5_000)]],
  ['authorization', ['', 'Bearer', 'Bearer x', 'Basic eDp5', `Bearer baton_${'x'.repeat(5_000)}`]],
  ['x-forwarded-for', ['1.2.3.4', 'x, y', '::1']],
  ['traceparent', ['00-0-0-0', 'x']],
  ['odd-bin', ['AAEC', '!!', 'A'.repeat(9_000)]],
  ['te', ['', 'gzip']],
];

interface Call {
  service: string;
  rpc: string;
  json: object;
}

/** Valid calls of all services. Tasks may be of `known`. */
function validCalls({ taskIds, contextId }: Known): Call[] {
  const message = { messageId: 'm', role: 'ROLE_USER', contextId };
  const parts = { parts: [{ text: 'hello' }, { data: { a: [1, 'two'] } }, { raw: 'AAEC', filename: 'f' }] };
  const jsons: Record<string, object[]> = {
    'lf.a2a.v1.A2AService SendMessage': [
      { message: { ...message, ...parts }, configuration: { returnImmediately: true } },
    ],
    'lf.a2a.v1.A2AService SendStreamingMessage': [{ message: { ...message, ...parts } }],
    'a2a.v1.A2AService SendMessage': [{ request: { ...message, content: [{ text: 'hello' }] } }],
    'a2a.v1.A2AService SendStreamingMessage': [{ request: { ...message, content: [{ text: 'hello' }] } }],
  };
  const ofTask = taskIds.flatMap((id) => [{ id }, { name: `tasks/${id}` }]);
  const calls = GRPC_METHODS.flatMap(({ service, rpc }) =>
    (jsons[`${service} ${rpc}`] ?? [{}, ...ofTask]).map((json) => ({ service, rpc, json })),
  );
  const health = ['Check', 'Watch'].flatMap((rpc) =>
    ['', 'lf.a2a.v1.A2AService', 'other'].map((service) => ({ service: HEALTH, rpc, json: { service } })),
  );
  const questions = [
    { listServices: '' },
    { fileContainingSymbol: 'lf.a2a.v1.A2AService' },
    { fileByFilename: 'x' },
  ];
  const reflection = REFLECTIONS.flatMap((service) =>
    questions.map((json) => ({ service, rpc: 'ServerReflectionInfo', json })),
  );
  return [...calls, ...health, ...reflection];
}

/** The message of a call, or nothing of the fields that its type does not have. */
function messageOf({ service, rpc, json }: Call): Buffer {
  const { input } = methodOf(service, rpc);
  const known = Object.entries(json).filter(([name]) =>
    input.fields.some(({ jsonName }) => jsonName === name),
  );
  return encodeMessage(input, Object.fromEntries(known));
}

interface Change {
  act: (typeof ACTS)[number];
  at: number;
  bytes: Uint8Array;
}

function changed(message: Buffer, { act, at, bytes }: Change): Buffer {
  const place = message.length === 0 ? 0 : at % message.length;
  const more = Buffer.from(bytes);
  const [before, after] = [message.subarray(0, place), message.subarray(place)];
  switch (act) {
    case 'keep':
      return message;
    case 'cut':
      return before;
    case 'double':
      return Buffer.concat([message, message]);
    case 'unknown':
      // Field 1,000 with the bytes.
      return Buffer.concat([message, Buffer.from([0xc2, 0x3e, more.length]), more]);
    case 'flip':
      return Buffer.concat([before, Buffer.from([(after[0] ?? 0) ^ (1 << (at % 8))]), after.subarray(1)]);
    case 'insert':
      return Buffer.concat([before, more, after]);
    case 'groups':
      // Groups that nest, and never end.
      return Buffer.alloc(20_000, 0x0b);
    case 'empty':
      return Buffer.alloc(0);
    case 'random':
      return more;
  }
}

interface Frame {
  flag: number;
  isGzipped: boolean;
  length: (typeof LENGTHS)[number];
  times: number;
}

function framed(message: Buffer, { flag, isGzipped, length, times }: Frame): Buffer {
  const content = isGzipped ? gzipSync(message) : message;
  const lengths = { right: 0, cut: 0, short: -1, long: 100, huge: 0xffff_0000, none: -content.length };
  const head = Buffer.alloc(5);
  head.writeUInt8(flag);
  head.writeUInt32BE(Math.max(0, Math.min(content.length + lengths[length], 0xffff_ffff)), 1);
  const frame = Buffer.concat([head, content]);
  return Buffer.concat(
    Array.from({ length: times }, () => (length === 'cut' ? frame.subarray(0, 3) : frame)),
  );
}

/** Calls that are almost right: messages cut, doubled or with unknown fields, wrong lengths and flags, odd headers. */
export function grpcCases(known: Known, token: string): fc.Arbitrary<GrpcCase> {
  const calls = validCalls(known).map((call) => ({
    path: `/${call.service}/${call.rpc}`,
    message: messageOf(call),
  }));
  const odd = ODD_HEADERS.map(([name, values]) =>
    fc.constantFrom(...values).map((value) => [name, value] as const),
  );
  const change = fc.record({
    act: fc.constantFrom(...ACTS),
    at: fc.nat(),
    bytes: fc.uint8Array({ maxLength: 100 }),
  });
  const frame = fc.record({
    flag: fc.constantFrom(0, 0, 0, 0, 1, 2, 255),
    isGzipped: fc.constantFrom(false, false, false, true),
    length: fc.constantFrom(...LENGTHS),
    times: fc.constantFrom(1, 1, 1, 1, 0, 2, 5),
  });
  return fc
    .record({
      call: fc.constantFrom(...calls),
      path: fc.constantFrom('', '', '', '', '', '', '', 'x', '/'),
      change,
      frame,
      headers: fc.array(fc.oneof(...odd), { maxLength: 2 }),
    })
    .map(({ call, path, change: how, frame: shape, headers }) => ({
      path: call.path + path,
      headers: {
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: `Bearer ${token}`,
        'baton-agent': 'echo',
        ...Object.fromEntries(headers),
      },
      body: framed(changed(call.message, how), shape),
    }));
}
