import { queryOf, readFilters, unknownFilters } from './filters';

it('a state of A2A is a state of the list', () => {
  expect(readFilters({ state: 'TASK_STATE_INPUT_REQUIRED' })).toEqual({ state: 'input-required' });
  expect(readFilters({ state: 'failed' })).toEqual({ state: 'failed' });
});

it('a parameter of the URL selects parked tasks', () => {
  expect(readFilters({ parked: true })).toEqual({ parked: 'true' });
  expect(queryOf(readFilters({ parked: 'true' }), 0)).toEqual({ limit: 100, parked: true });
  expect(readFilters({ parked: 'maybe' })).toEqual({});
});

it('a choice that there is not is named', () => {
  expect(unknownFilters({ state: 'broken', since: '3y', agent: 'any' })).toEqual([
    ['state', 'broken'],
    ['since', '3y'],
  ]);
  expect(unknownFilters({ state: 'failed', since: '1h', until: '1h' })).toEqual([]);
  expect(unknownFilters({ state: { no: 'text' } })).toEqual([]);
});
