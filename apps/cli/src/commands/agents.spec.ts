import { slugOf } from './agents.js';

describe('the slug a name suggests', () => {
  it.each([
    ['Trip planner', 'trip-planner'],
    ["Ann's Café (v2)", 'anns-cafe-v2'],
    ['a_b--c', 'a-b-c'],
    ['日本', ''],
  ])('%s: %s', (name, slug) => expect(slugOf(name)).toBe(slug));
});
