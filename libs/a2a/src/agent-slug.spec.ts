import { assertAgentSlug } from './agent-slug.js';
import { refusalOf } from './testing/refusal.js';

describe('the slug of an agent', () => {
  it.each(['a', '0', 'my-agent', 'a--b', 'x'.repeat(63)])('may be %s', (slug) => {
    expect(() => assertAgentSlug(slug)).not.toThrow();
  });

  it.each(['', '-a', 'a-', 'A', 'ä', 'a b', 'a/b', 'a_b', 'a\n', 'x'.repeat(64), 'echo', 'index'])(
    'may not be %j',
    (slug) => {
      expect(refusalOf(() => assertAgentSlug(slug))).toBe('slug');
    },
  );
});
