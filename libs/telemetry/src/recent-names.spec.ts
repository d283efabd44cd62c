import { RecentNames } from './recent-names.js';

let recent: RecentNames;

beforeEach(() => {
  jest.useFakeTimers();
  recent = new RecentNames(100);
});
afterEach(() => jest.useRealTimers());

it('forgets a name some time after it was seen last', () => {
  recent.add('a');
  jest.advanceTimersByTime(60);
  recent.add('b');
  recent.add('a');
  jest.advanceTimersByTime(60);
  expect([recent.has('a'), recent.has('b'), recent.isEmpty]).toEqual([true, true, false]);
  jest.advanceTimersByTime(40);
  expect([recent.has('a'), recent.has('b'), recent.isEmpty]).toEqual([false, false, true]);
});

it('has none that was removed', () => {
  recent.add('a');
  recent.forget('a');
  expect([recent.has('a'), recent.isEmpty]).toEqual([false, true]);
});
