import { fits } from './mcp-config.js';

describe('patterns of names', () => {
  it.each([
    ['read', 'read', true],
    ['read', 'read_file', false],
    ['read_*', 'read_file', true],
    ['*_file', 'read_file', true],
    ['*', 'anything', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['ab*ba', 'aba', false],
    ['a.c', 'abc', false],
  ])('%s fits %s: %s', (pattern, name, expected) => {
    expect(fits([pattern], name)).toBe(expected);
  });

  it('fit everything with `all`, and nothing without any', () => {
    expect([fits('all', 'x'), fits([], 'x'), fits(undefined, 'x')]).toEqual([true, false, false]);
  });
});
