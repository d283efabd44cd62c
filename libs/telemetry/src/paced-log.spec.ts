import { PacedLog } from './paced-log.js';

it('writes the first event at once, and then one line in ten seconds with the number of events', () => {
  jest.useFakeTimers();
  const log = new PacedLog();
  const lines: number[] = [];
  const note = (): void => log.note((events) => lines.push(events));
  note();
  note();
  jest.advanceTimersByTime(9_999);
  note();
  expect(lines).toEqual([1]);
  jest.advanceTimersByTime(1);
  note();
  expect(lines).toEqual([1, 3]);
  jest.useRealTimers();
});
