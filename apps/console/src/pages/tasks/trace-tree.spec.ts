import { barsOf, type Span } from './trace-tree';

const at = (second: number): string => new Date(Date.UTC(2026, 10, 26, 12, 0, second)).toISOString();
const span = (id: string, parent: string | null, from: number, to: number | null): Span => ({
  id,
  parent_id: parent,
  kind: 'turn',
  name: '1',
  started_at: at(from),
  ended_at: to === null ? null : at(to),
  state: 'succeeded',
});
const shown = (spans: Span[], now = 10) =>
  barsOf(spans, at(now)).map(({ span: { id }, depth, left, width, ms }) => [id, depth, left, width, ms]);

describe('the bars of a trace', () => {
  it('are on one axis of time, each below the one around it', () => {
    expect(
      shown([span('a', null, 0, 4), span('a1', 'a', 1, 2), span('b', null, 5, 10), span('a2', 'a', 2, 4)]),
    ).toEqual([
      ['a', 0, 0, 0.4, 4_000],
      ['a1', 1, 0.1, 0.1, 1_000],
      ['a2', 1, 0.2, 0.2, 2_000],
      ['b', 0, 0.5, 0.5, 5_000],
    ]);
  });

  it('go up to now while their spans have not ended', () => {
    expect(shown([span('a', null, 0, 2), span('b', 'a', 2, null)], 4)).toEqual([
      ['a', 0, 0, 0.5, 2_000],
      ['b', 1, 0.5, 0.5, 2_000],
    ]);
  });

  it('are seen however short their spans are, and stay within the axis', () => {
    expect(shown([span('a', null, 0, 8), span('b', 'gone', 8, 8)])).toEqual([
      ['a', 0, 0, 1, 8_000],
      ['b', 0, 0.998, expect.closeTo(0.002), 0],
    ]);
    expect(shown([])).toEqual([]);
  });
});
