import { readTraceSearch, traceFilterOf } from './trace-search';

describe('the filter of a trace in an address', () => {
  it('is read without unknown parameters', () => {
    const all = { find: 'refund', kind: 'tool', errors: 'true', slow: '10s' };
    expect(readTraceSearch({ ...all, tab: 'trace' })).toEqual(all);
    expect(readTraceSearch({ find: 404, errors: true })).toEqual({ find: '404', errors: 'true' });
    expect(readTraceSearch({ find: '', kind: 'toString', errors: 'no', slow: 'constructor' })).toEqual({});
    expect(readTraceSearch({ find: 'x'.repeat(500) }).find).toHaveLength(200);
  });

  it('is that of the rows', () => {
    expect(traceFilterOf({ find: 'a', kind: 'model', errors: 'true', slow: '1min' })).toEqual({
      text: 'a',
      kind: 'model',
      errors: true,
      minMs: 60_000,
    });
    expect(traceFilterOf({})).toBeUndefined();
  });
});
