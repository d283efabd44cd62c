import fc from 'fast-check';
import { ProtocolError } from './errors.js';
import { assertJsonLimits } from './json-limits.js';

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

describe('the limits of JSON', () => {
  it('refuses exactly what is deeper than the limit', () => {
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
