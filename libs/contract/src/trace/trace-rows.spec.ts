import { type RestSpan, type SpansAt, traceRows } from './trace-rows.js';

const at = (second: number): string => new Date(Date.UTC(2026, 10, 26, 12, 0, second)).toISOString();
const span = (id: string, parent: string | null, from: number, to: number | null, more = {}): RestSpan => ({
  id,
  parent_id: parent,
  kind: 'turn',
  name: '1',
  started_at: at(from),
  ended_at: to === null ? null : at(to),
  state: 'succeeded',
  ...more,
});
const child = (taskId: string, parent: string | null, from: number, to: number): RestSpan =>
  span(`child ${taskId}`, parent, from, to, { kind: 'child', task_id: taskId });
const shown = (spans: RestSpan[], now = 10, children?: Map<string, SpansAt>) =>
  traceRows('t', { spans, now: at(now) }, children).rows.map(({ span: { id }, depth, start, ms }) => [
    id,
    depth,
    start,
    ms,
  ]);

describe('the rows of a trace', () => {
  it('are on one axis of time, each below the one around it', () => {
    const spans = [
      span('a', null, 1, 5),
      span('a1', 'a', 2, 3),
      span('b', null, 6, 11),
      span('a2', 'a', 3, 5),
    ];
    expect(shown(spans)).toEqual([
      ['a', 0, 0, 4_000],
      ['a1', 1, 1_000, 1_000],
      ['a2', 1, 2_000, 2_000],
      ['b', 0, 5_000, 5_000],
    ]);
    expect(traceRows('t', { spans, now: at(20) }).ms).toBe(10_000);
  });

  it('go up to now while their spans have not ended', () => {
    expect(shown([span('a', null, 0, 2), span('b', 'a', 2, null)], 4)).toEqual([
      ['a', 0, 0, 2_000],
      ['b', 1, 2_000, 2_000],
    ]);
  });

  it('are on an axis that ends with the task, and not with the push notifications about it', () => {
    const push = span('p', null, 0, null, { kind: 'push', state: 'waiting' });
    const delivery = span('d', 'p', 50, 51, { kind: 'delivery', state: 'failed' });
    expect(traceRows('t', { spans: [span('a', null, 0, 2), push, delivery], now: at(59) }).ms).toBe(2_000);
    expect(traceRows('t', { spans: [push], now: at(59) }).ms).toBe(59_000);
  });

  it('are at the top if the span around them is not there', () => {
    expect(shown([span('a', null, 0, 8), span('b', 'gone', 8, 8)])).toEqual([
      ['a', 0, 0, 8_000],
      ['b', 0, 8_000, 0],
    ]);
    expect(traceRows('t', { spans: [], now: at(0) })).toEqual({ rows: [], ms: 1 });
  });

  it('show the trace of an opened child in place of the spans that its parent has of it', () => {
    const spans = [span('a', null, 0, 8), child('one', 'a', 1, 7), child('two', 'child one', 2, 3)];
    expect(shown(spans).map(([id]) => id)).toEqual(['a', 'child one', 'child two']);
    const one = {
      spans: [span('a', null, 1, 7), span('t', 'a', 2, 3), child('two', 't', 2, 3)],
      now: at(30),
    };
    expect(shown(spans, 10, new Map([['one', one]]))).toEqual([
      ['a', 0, 0, 8_000],
      ['child one', 1, 1_000, 6_000],
      ['a', 2, 1_000, 6_000],
      ['t', 3, 2_000, 1_000],
      ['child two', 4, 2_000, 1_000],
    ]);
    const keys = traceRows('t', { spans, now: at(10) }, new Map([['one', one]])).rows.map(({ key }) => key);
    expect(new Set(keys).size).toBe(5);
  });

  it('end where a task is said to be below itself, and take any depth', () => {
    const loop = { spans: [child('t', null, 0, 1)], now: at(1) };
    expect(
      shown(
        [child('one', null, 0, 1)],
        1,
        new Map([
          ['one', loop],
          ['t', loop],
        ]),
      ),
    ).toHaveLength(2);
    const deep = Array.from({ length: 20_000 }, (_, i) =>
      span(String(i), i === 0 ? null : String(i - 1), 0, 1),
    );
    expect(shown(deep).at(-1)?.[1]).toBe(19_999);
  });
});
