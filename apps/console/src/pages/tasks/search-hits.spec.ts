import { hitsOf } from './search-hits';

const marked = (text: string, searched?: string): string =>
  hitsOf(text, searched)
    .map(({ part, isHit }) => (isHit ? `[${part}]` : part))
    .join('');

it.each([
  ['Where is parcel 4711? PARCEL!', 'parcel', 'Where is [parcel] 4711? [PARCEL]!'],
  ['parcel', 'Parcel', '[parcel]'],
  ['a+b (c) \\ a+b', 'a+b', '[a+b] (c) \\ [a+b]'],
  ['100 % [x]', '[x]', '100 % [[x]]'],
  ['one two', 'one\n two', '[one two]'],
  ['nothing', 'else', 'nothing'],
  ['nothing', ' ', 'nothing'],
  ['nothing', undefined, 'nothing'],
])('%j marks %j', (text, searched, shown) => {
  expect(marked(text, searched)).toBe(shown);
});
