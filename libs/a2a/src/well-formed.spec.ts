import fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import { sseRecord } from './codecs/codec.js';
import { shortened } from './shortened.js';
import { decodeEnvelope } from './json-rpc.js';
import { parseJsonBody } from './json-limits.js';
import { errorOf, refusalOf } from '../../../test/support/a2a/profile.js';
import { answerJson, assertWellFormed, wellFormed, wellFormedJson } from './well-formed.js';

/** Any UTF-16 code units, many of them surrogates and characters that JSON escapes. */
const text = fc.string({
  unit: fc.oneof(
    fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    fc.constantFrom('\ud83d', '\ude00', '\\', '"', 'u', 'd83d', '\\ud83d', '\0', '\u2028', '\u0085'),
  ),
});
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(null, true, 1.5),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      text.filter((name) => name !== '__proto__'),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
}));

describe('text that leaves', () => {
  it('has U+FFFD in place of each lone surrogate, and is the same otherwise', () => {
    expect(wellFormed({ '\ud83d': ['a\ude00b', { c: '\u{1f600}\0' }] })).toEqual({
      '\ufffd': ['a\ufffdb', { c: '\u{1f600}\0' }],
    });
    const fine = { a: ['\u{1f600}', Buffer.from('x')] };
    expect(wellFormed(fine)).toBe(fine);
    fc.assert(
      fc.property(value, (any) => {
        expect(JSON.parse(answerJson(any))).toEqual(JSON.parse(JSON.stringify(wellFormed(any))));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    [String.raw`"\ud83d"`, String.raw`"\ufffd"`],
    [String.raw`"\uD83D\uDE00 \ud83d\ude00"`, String.raw`"\uD83D\uDE00 \ud83d\ude00"`],
    [String.raw`"\ude00\ud83d"`, String.raw`"\ufffd\ufffd"`],
    [String.raw`"\\ud83d \\\ud83d"`, String.raw`"\\ud83d \\\ufffd"`],
    [String.raw`"\u0000 \u00e9"`, String.raw`"\u0000 \u00e9"`],
  ])('as JSON: %s is %s', (json, mended) => {
    expect(wellFormedJson(json)).toBe(mended);
  });

  it('has no character in a server-sent event at which a client could end a line', () => {
    fc.assert(
      fc.property(value, (any) => {
        const record = sseRecord(JSON.stringify(any), { sequence: 1 });
        const lines = record.split(/[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]/u);
        expect(lines).toEqual(['id: 1', expect.stringMatching(/^data: /), '', '']);
        const data = lines[1]!.slice('data: '.length);
        expect(JSON.parse(data)).toEqual(JSON.parse(JSON.stringify(wellFormed(any))));
      }),
      { numRuns: 500 },
    );
  });

  it('quotes what a caller sent only up to the end of a character', () => {
    expect(shortened('ab\u{1f600}cd', 3)).toBe('ab…');
    expect(shortened('ab\u{1f600}cd', 4)).toBe('ab\u{1f600}…');
    expect(shortened('ab\u{1f600}', 4)).toBe('ab\u{1f600}');
  });
});

describe('text of a caller', () => {
  it.each([
    [{ a: { b: ['x', '\ud83d'] } }, 'a.b[1]'],
    [{ a: [{ '\ude00': 1 }] }, 'a[0]'],
    [['\u{1f600}', { n: Infinity }], '[1].n'],
    ['\ud83d', 'the body'],
    [{ ['k'.repeat(1_000)]: '\ud83d' }, `${'k'.repeat(200)}…`],
  ])('is refused by its field: %#', (body, field) => {
    expect(refusalOf(() => assertWellFormed(body, 'the body'))).toBe(field);
  });

  it('is refused if and only if it is not well-formed', () => {
    fc.assert(
      fc.property(value, (any) => {
        const refused = refusalOf(() => assertWellFormed(any, 'the body'));
        expect(refused === undefined).toBe(isDeepStrictEqual(any, wellFormed(any)));
      }),
      { numRuns: 500 },
    );
  });

  it('is refused in the body of a request, and in an envelope', () => {
    expect(refusalOf(() => parseJsonBody(String.raw`{"name": "\ud83d"}`))).toBe('name');
    expect(refusalOf(() => parseJsonBody('{"config": {"temperature": 1e400}}'))).toBe('config.temperature');
    const envelope = (members: string) => () => decodeEnvelope(`{"jsonrpc": "2.0", ${members}}`);
    expect(errorOf(envelope(String.raw`"id": "\ud83d", "method": "GetTask"`))).toMatchObject({
      kind: 'invalid-request',
      id: null,
      message: 'id: must be well-formed Unicode',
    });
    expect(errorOf(envelope(String.raw`"id": 1, "method": "Get\ud83d"`))).toMatchObject({
      kind: 'invalid-request',
      id: 1,
      message: 'method: must be well-formed Unicode',
    });
  });
});
