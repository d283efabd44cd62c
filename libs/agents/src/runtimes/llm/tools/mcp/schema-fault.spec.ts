import { schemaFault } from './schema-fault.js';

describe('an input schema', () => {
  it.each([
    [{ type: 'strng' }, 'with the type "strng", which JSON Schema does not have'],
    [
      { type: 'object', properties: { a: { type: ['string', 'any'] } } },
      'with the type "any", which JSON Schema does not have',
    ],
    [{ items: [{ anyOf: [{ type: 7 }] }] }, 'with the type 7, which JSON Schema does not have'],
    [{ additionalProperties: { pattern: '(' } }, 'with the pattern "(", which is no regular expression'],
    [{ properties: { a: { $ref: '#/nope' } } }, 'with the $ref "#/nope", which leads nowhere'],
    [{ $defs: { a: { not: { $ref: '#/$defs/b' } } } }, 'with the $ref "#/$defs/b", which leads nowhere'],
  ])('%j has a fault that providers refuse', (schema, fault) => expect(schemaFault(schema)).toBe(fault));

  it.each([
    [{}],
    [{ type: ['string', 'null'], pattern: '^\\w+$' }],
    [{ type: 'OBJECT', properties: { type: { type: 'STRING' }, pattern: { const: '(' } } }],
    [{ pattern: '\\_' }],
    [{ properties: { a: { $ref: '#/$defs/x~1y%20z' } }, $defs: { 'x/y z': { type: 'integer' } } }],
    [{ properties: { a: { $ref: '#' }, b: { $ref: '#anchor' }, c: { $ref: 'other.json#/a' } } }],
    [{ properties: { a: true }, items: false, enum: [{ type: 'strng' }], default: { $ref: '#/nope' } }],
  ])('%j has none', (schema) => expect(schemaFault(schema)).toBeUndefined());

  it('is looked at in linear time, also if it goes round in a circle', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, i) => [
        `d${i}`,
        { allOf: [{ $ref: `#/$defs/d${(i + 1) % 10_000}` }] },
      ]),
    );
    expect(schemaFault({ $ref: '#/$defs/d0', $defs })).toBeUndefined();
  });
});
