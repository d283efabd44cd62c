import { checkOf, isJsonSchema } from './json-schema.js';

describe('a JSON schema', () => {
  it.each([
    ['http://json-schema.org/draft-07/schema#'],
    ['https://json-schema.org/draft/2020-12/schema'],
    [undefined],
  ])('of dialect %s says what is wrong with a value, by path', (dialect) => {
    const schema = {
      ...(dialect && { $schema: dialect }),
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
      required: ['city'],
      additionalProperties: false,
    };
    const check = checkOf(schema);
    expect(check({ city: 'Lisbon', days: 3 })).toBeUndefined();
    expect(check({ city: 'Lisbon', days: 0 })).toBe('/days must be >= 1');
    expect(check({ days: '3', more: 1 })).toBe(
      "the value must have required property 'city'; " +
        'the value must NOT have additional properties (more); /days must be integer',
    );
  });

  it('is told from what is none', () => {
    expect(isJsonSchema({ type: 'object', 'x-own': true, properties: { at: { format: 'moon' } } })).toBe(
      true,
    );
    expect(isJsonSchema({ type: 'objekt' })).toBe(false);
    expect(isJsonSchema({ type: 'object', properties: { a: { pattern: '(' } } })).toBe(false);
  });

  it('that is none lets everything pass', () => {
    expect(checkOf({ type: 'objekt' })({ a: 1 })).toBeUndefined();
  });

  it('can not hold up the process with a pattern that takes for ever', () => {
    const check = checkOf({ type: 'string', pattern: '^(a+)+$' });
    expect(check('aaaa')).toBeUndefined();
    expect(check(`${'a'.repeat(64)}!`)).toMatch('must match pattern');
  });
});
