import { stepDetail } from './step-detail.js';

const entry = { execution: 1, id: 2, at: '2026-01-31T12:00:00.000Z', head: 3, event: 'ended' };

describe('the result of a step', () => {
  it('is what the code has returned', () => {
    expect(stepDetail({ ...entry, result: '{"a":[1]}' })).toEqual({
      kind: 'step',
      result: { a: [1] },
      error: null,
    });
    expect(stepDetail(entry)).toEqual({ kind: 'step', result: undefined, error: null });
  });

  it('says why the step failed', () => {
    const error = { name: 'TypeError', message: 'no paper' };
    expect(stepDetail({ ...entry, error })).toMatchObject({ error: 'TypeError: no paper' });
  });

  it('is not found in other entries, and a result that is no JSON stays a text', () => {
    for (const other of [null, 'x', { ...entry, event: 'begun' }, { kind: 'result' }])
      expect(stepDetail(other)).toBeUndefined();
    expect(stepDetail({ ...entry, result: '{' })).toMatchObject({ result: '{' });
  });
});
