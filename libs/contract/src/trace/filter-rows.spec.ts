import { filterRows, type TraceFilter } from './filter-rows.js';
import { type RestSpan, traceRows } from './trace-rows.js';

const at = (second: number): string => new Date(Date.UTC(2026, 10, 26, 12, 0, second)).toISOString();
const span = (id: string, parent: string | null, kind: RestSpan['kind'], more = {}): RestSpan => ({
  id,
  parent_id: parent,
  kind,
  name: id,
  started_at: at(0),
  ended_at: at(1),
  state: 'succeeded',
  ...more,
});
const SPANS = [
  span('1', null, 'turn'),
  span('first', '1', 'attempt'),
  span('m', 'first', 'model'),
  span('Find_order', 'first', 'tool', { state: 'failed', error: 'No such order.', ended_at: at(3) }),
  span('agent-id', 'Find_order', 'child'),
  span('second', '1', 'attempt', { state: 'failed' }),
  span('2', null, 'turn'),
  span('refund', '2', 'tool', { ended_at: at(9) }),
];
const { rows } = traceRows('t', { spans: SPANS, now: at(9) });
const found = (filter: TraceFilter) => {
  const { rows: kept, hits } = filterRows(rows, filter, ({ kind, name }) =>
    kind === 'child' ? 'helper' : name,
  );
  return kept.map((row) => (hits.has(row.key) ? `[${row.span.id}]` : row.span.id));
};

describe('a filtered trace', () => {
  it('has the matching spans, each below all that are around it', () => {
    expect(found({ errors: true })).toEqual(['1', 'first', '[Find_order]', '[second]']);
    expect(found({ kind: 'tool' })).toEqual(['1', 'first', '[Find_order]', '2', '[refund]']);
  });

  it('is searched in kinds, names as they are shown, and errors, in any case', () => {
    expect(found({ text: 'FIND' })).toEqual(['1', 'first', '[Find_order]']);
    expect(found({ text: 'helper' })).toEqual(['1', 'first', 'Find_order', '[agent-id]']);
    expect(found({ text: 'agent-id' })).toEqual([]);
    expect(found({ text: 'such order' })).toEqual(['1', 'first', '[Find_order]']);
    expect(found({ text: 'tool re' })).toEqual(['2', '[refund]']);
  });

  it('has the slow ones, and those that have all that is asked for', () => {
    expect(found({ minMs: 2_000 })).toEqual(['1', 'first', '[Find_order]', '2', '[refund]']);
    expect(found({ minMs: 2_000, errors: true, kind: 'tool', text: 'find' })).toEqual([
      '1',
      'first',
      '[Find_order]',
    ]);
    expect(found({ minMs: 9_001 })).toEqual([]);
  });

  it('is whole without a filter', () => {
    expect(filterRows(rows, {})).toEqual({ rows, hits: new Set(rows.map(({ key }) => key)) });
  });
});
