import { assertAgentSlug, slugOf } from './ids.js';
import { refusalOf } from '../../../test/support/a2a/profile.js';

describe('the slug of an agent', () => {
  it.each(['a', '0', 'my-agent', 'a--b', 'x'.repeat(63)])('may be %s', (slug) => {
    expect(() => assertAgentSlug(slug)).not.toThrow();
  });

  it.each([
    '',
    '-a',
    'a-',
    'A',
    'ä',
    'a b',
    'a/b',
    'a_b',
    'a\n',
    'x'.repeat(64),
    'echo',
    'index',
    'a2a',
    '5f0c954e-9b3d-4f6d-8f2e-0123456789ab',
  ])('may not be %j', (slug) => {
    expect(refusalOf(() => assertAgentSlug(slug))).toBe('slug');
  });
});

describe('the slug a name suggests', () => {
  it.each([
    ['Trip planner', 'trip-planner'],
    ["Ann's Café (v2)", 'anns-cafe-v2'],
    ['a_b--c', 'a-b-c'],
    ['日本', ''],
  ])('%s: %s', (name, slug) => expect(slugOf(name)).toBe(slug));
});
