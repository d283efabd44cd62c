import fc from 'fast-check';
import { junk, oddText } from './junk.js';
import { type Mutation, mutate, mutations } from './mutate.js';
import { type Known, plainPathsOf, templatesOf } from './requests.js';

/** One request as it goes over the wire. */
export interface HttpCase {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}

/** Header values by name; some are right. `undefined` takes a header away. */
const HEADERS: Record<string, readonly (string | undefined)[]> = {
  'a2a-version': ['1.0', '0.3', '0.1', '0.2', '2.0', '1', '1.0.7', 'x', '', '1.0, 0.3', '9'.repeat(500)],
  accept: ['application/json', 'text/event-stream', '*/*', 'image/png', '', 'application/json;q=0', ',,;;'],
  'content-type': [
    'application/json',
    'application/json; charset=utf-8',
    'application/a2a+json',
    'text/plain',
    '',
    'application/json; charset=latin1',
    'application/json;;;=',
    'multipart/form-data; boundary=x',
    undefined,
  ],
  'last-event-id': ['0', '1', '2', '99999', '-1', '1e3', 'x', '', '9'.repeat(400), '1, 2'],
  authorization: [
    'Bearer wrong',
    'Bearer',
    'Basic YTpi',
    'bearer  x y',
    '',
    undefined,
    `Bearer ${'a'.repeat(3_000)}`,
  ],
  'content-encoding': ['identity', 'gzip', 'br', ''],
  'x-request-id': ['abc', '<x>', 'a'.repeat(300), ''],
  traceparent: [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, '00-x', ''],
  'idempotency-key': ['k-1', 'k-2', '', 'a'.repeat(300), '"quoted"', 'ü'],
  'a2a-extensions': ['urn:a', 'urn:a, urn:b', ',', 'a'.repeat(2_000)],
  'mcp-protocol-version': ['2026-07-28', '2025-11-25', '2025-06-18', '2024-11-05', '', 'x', '9'.repeat(300)],
  'mcp-method': ['tools/call', 'tools/list', 'tasks/get', '', 'x', undefined],
  'mcp-name': ['echo', 'ECHO', '', '=?base64?ZWNobw==?=', '=?base64?%?=', 'a'.repeat(2_000), undefined],
  host: ['fuzz.example', 'FUZZ.example:80', 'other.example', '[::1]', 'a..b', '-', 'a'.repeat(300)],
  expect: ['100-continue'],
  connection: ['close', 'keep-alive', 'upgrade'],
};

const header = fc
  .constantFrom(...Object.keys(HEADERS))
  .chain((name) => fc.constantFrom(...HEADERS[name]!).map((value) => [name, value] as const));

/** What is done to the text of a body. */
const TEXT_ACTS: readonly ((text: string, at: number) => string | Buffer)[] = [
  (text, at) => text.slice(0, at % (text.length + 1)),
  (text, at) => text.slice(at % (text.length + 1)),
  (text) => `\ufeff${text}`,
  (text) => `[${text}]`,
  (text) => `${text}${text}`,
  (text) => `${text.slice(0, -1)},"id":"second","id":"third"}`,
  (text) => text.replace('"id":', '"id":1e400,"x":'),
  (text) => text.replaceAll('"', "'"),
  (text) => Buffer.from(text, 'utf16le'),
  (text, at) =>
    Buffer.concat([
      Buffer.from(text.slice(0, at)),
      Buffer.from([0xff, 0xc0, 0]),
      Buffer.from(text.slice(at)),
    ]),
  (_text, at) => '['.repeat(at * 20),
  (_text, at) => '{"a":'.repeat(at),
  (text, at) => text.replace('"params":', `${' '.repeat(at * 50)}"params":`),
  () => '',
  () => 'null',
  () => '"text"',
];

const envelope = fc.record({
  id: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom<unknown>(1, 'id', 0, '') },
    { weight: 2, arbitrary: junk },
  ),
  hasId: fc.constantFrom(true, true, true, true, true, false),
  changes: mutations,
  headers: fc.array(header, { maxLength: 3 }),
  text: fc.option(fc.tuple(fc.nat(TEXT_ACTS.length - 1), fc.nat(200)), { nil: undefined, freq: 5 }),
  query: fc.constantFrom(
    '',
    '',
    '',
    '?A2A-Version=1.0',
    '?access_token=x',
    '?%zz',
    '?A2A-Version=1&A2A-Version=2',
  ),
});

/** Requests that are almost right, in every form that some path takes, and some that are not right at all. */
export function httpCases(known: Known, token: string): fc.Arbitrary<HttpCase> {
  const base = { authorization: `Bearer ${token}` };
  const rpc = fc
    .tuple(fc.constantFrom(...templatesOf(known)), envelope)
    .map(([template, { id, hasId, changes, headers, text, query }]): HttpCase => {
      const { path, method, params, headers: own } = template;
      const request = { jsonrpc: '2.0', ...(hasId && { id }), method, params };
      // Half of the changes are to what is decoded, half may also hit the envelope.
      const changed =
        path.length % 2 ? mutate(request, changes) : { ...request, params: mutateParams(params, changes) };
      return {
        method: 'POST',
        path: path + query,
        headers: headersOf(
          { ...base, 'content-type': 'application/json', host: 'fuzz.example', ...own },
          headers,
        ),
        body: bodyOf(JSON.stringify(changed), text),
      };
    });
  const plain = fc
    .tuple(
      fc.constantFrom(...plainPathsOf(known)),
      fc.array(header, { maxLength: 2 }),
      fc.option(oddText),
      fc.nat(60),
    )
    .map(([[method, path], headers, odd, at]): HttpCase => ({
      method,
      path:
        odd === null
          ? path
          : `${path.slice(0, 1 + at)}${encodeURIComponent(Buffer.from(odd.slice(0, 300)).toString())}`,
      headers: headersOf({ ...base, host: 'fuzz.example' }, headers),
      body: undefined,
    }));
  return fc.oneof({ weight: 9, arbitrary: rpc }, { weight: 1, arbitrary: plain });
}

const mutateParams = (params: object, changes: Mutation[]): unknown => mutate(params, changes);

function headersOf(base: object, changes: (readonly [string, string | undefined])[]): Record<string, string> {
  const all: [string, unknown][] = Object.entries({ ...base, ...Object.fromEntries(changes) });
  const present = all.filter((one): one is [string, string] => one[1] !== undefined);
  return Object.fromEntries(present.map(([name, value]) => [name, Buffer.from(value).toString('latin1')]));
}

function bodyOf(text = '', change: [act: number, at: number] | undefined): Buffer {
  if (!change) return Buffer.from(text);
  const [act, at] = change;
  return Buffer.from(TEXT_ACTS[act]!(text, at));
}
