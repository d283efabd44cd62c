import { heldOrder } from './held-order';

interface Row {
  id: string;
  text: string;
}
const rows = (...ids: string[]): Row[] => ids.map((id) => ({ id, text: `${id} now` }));
const held = (shown: string[], ...now: string[]) => heldOrder(shown, rows(...now), ({ id }) => id);

it('a held row stays where it is, with its newest content', () => {
  expect(held(['c', 'b', 'a'], 'a', 'c', 'b')).toEqual({ rows: rows('c', 'b', 'a'), fresh: 0 });
});

it('a new row above is counted, and one below is added', () => {
  expect(held(['c', 'b'], 'e', 'd', 'c', 'b', 'a')).toEqual({ rows: rows('c', 'b', 'a'), fresh: 2 });
});

it('a row that is gone leaves its place', () => {
  expect(held(['c', 'b', 'a'], 'c', 'a')).toEqual({ rows: rows('c', 'a'), fresh: 0 });
});
