import fc from 'fast-check';
import { ProtocolError } from './protocol-error.js';
import { assertJsonLimits, jsonExcess, parseJsonBody } from './json-limits.js';
import { JsonScanner } from './json-scanner.js';

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

/** Every value that is in a list or an object, and those themselves; an empty one counts as having one. */
const valuesOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Math.max(1, Object.values(value).length) +
      Object.values(value).reduce<number>((sum, each) => sum + valuesOf(each), 0)
    : 0;

const loose = { maxDepth: 1000, maxValues: 1000 };
const anyJson = fc.oneof(fc.jsonValue({ maxDepth: 6 }), fc.string({ unit: 'binary' }), fc.string());

describe('the limits of JSON', () => {
  it('refuses exactly depth above the limit', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 1, max: 6 }), (value, max) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes('__proto__') && !text.includes('constructor'));
        if (depthOf(value) > max) expect(() => assertJsonLimits(value, max)).toThrow(ProtocolError);
        else expect(() => assertJsonLimits(value, max)).not.toThrow();
      }),
    );
  });

  it('survives a million levels', () => {
    let value: unknown = [];
    for (let i = 0; i < 1e6; i += 1) value = [value];
    expect(() => assertJsonLimits(value)).toThrow(/200 levels/);
  });

  it('takes keys that only look dangerous', () => {
    const json = '{"prototype":1,"constructor":{"name":"x"},"a":{"constructor":null},"proto":{"__proto":1}}';
    expect(() => assertJsonLimits(JSON.parse(json))).not.toThrow();
  });
});

describe('JSON before it is parsed', () => {
  it('has its real depth, with any strings and in any chunks', () => {
    fc.assert(
      fc.property(anyJson, fc.integer({ min: 1, max: 7 }), fc.nat(), (value, maxDepth, at) => {
        const bytes = Buffer.from(JSON.stringify({ 'a\\"[{': '\\"[[[', value }));
        const scanner = new JsonScanner({ ...loose, maxDepth });
        const cut = at % (bytes.length + 1);
        const found = scanner.scan(bytes.subarray(0, cut)) ?? scanner.scan(bytes.subarray(cut));
        expect(found).toBe(depthOf(value) + 1 > maxDepth ? 'depth' : undefined);
      }),
    );
  });

  it('has as many values as are found, also a byte at a time', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const bytes = Buffer.from(JSON.stringify(value));
        const count = valuesOf(value);
        const scan = (maxValues: number): unknown => {
          const scanner = new JsonScanner({ ...loose, maxValues });
          return [...bytes].map((byte) => scanner.scan(Uint8Array.of(byte))).find(Boolean);
        };
        expect(scan(count)).toBeUndefined();
        if (count > 0) expect(scan(count - 1)).toBe('values');
      }),
    );
  });

  it.each([
    ['a quote after many backslashes', `["${'\\\\'.repeat(500)}", [[[1]]]]`, 4],
    ['an escaped quote after many backslashes', `["${'\\\\'.repeat(500)}\\"[[[[", [1]]`, 2],
    ['a long string with brackets', `["${'[{'.repeat(500)}"]`, 1],
    ['many escaped quotes', `["${'\\"['.repeat(500)}"]`, 1],
  ])('knows where a string ends: %s', (_what, text, depth) => {
    expect(depthOf(JSON.parse(text))).toBe(depth);
    expect(jsonExcess(text, { ...loose, maxDepth: depth })).toBeUndefined();
    expect(jsonExcess(text, { ...loose, maxDepth: depth - 1 })).toBe('depth');
  });

  it.each([
    ['16 MB of [', '['.repeat(16_000_000), /deeper than 200 levels/],
    ['16 MB of {"a":', '{"a":'.repeat(3_200_000), /deeper than 200 levels/],
    ['lists in a list', `[${'[],'.repeat(2_000_000)}[]]`, /more than 100000 JSON values/],
    ['numbers in a list', `[${'1,'.repeat(2_000_000)}1]`, /more than 100000 JSON values/],
    ['members of an object', `{${'"a":1,'.repeat(2_000_000)}"b":1}`, /more than 100000 JSON values/],
  ])('is refused without being parsed: %s', (_what, text, message) => {
    const parse = jest.spyOn(JSON, 'parse');
    expect(() => parseJsonBody(text)).toThrow(message);
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it('is taken up to the limits', () => {
    const deep = '['.repeat(199) + ']'.repeat(199);
    expect(parseJsonBody(`{"a":${deep}}`)).toEqual({ a: JSON.parse(deep) });
    expect(parseJsonBody(`[${'1,'.repeat(99_998)}1]`)).toHaveLength(99_999);
  });
});
