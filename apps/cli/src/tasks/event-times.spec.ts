import type { NumberedEvent } from '../call/agent-client.js';
import { EventTimes } from './event-times.js';

const event = (sequence: number): NumberedEvent => ({
  sequence,
  payload: { $case: 'artifactUpdate', value: { taskId: 't', contextId: 'c' } as never },
});
const at = (sequence: number): Date => new Date(sequence * 1_000);
const timesOf = (...sequences: number[]) => new Map(sequences.map((sequence) => [sequence, at(sequence)]));

/** A clock that advances while a caller sleeps. */
function createClock() {
  let ms = 1_000_000;
  const sleeps: number[] = [];
  const sleep = async (forMs: number): Promise<void> => {
    sleeps.push(forMs);
    ms += forMs;
  };
  return { now: () => ms, sleep, sleeps };
}

it('asks once for events that are stored already', async () => {
  const asked: number[] = [];
  const times = new EventTimes(async (after) => {
    asked.push(after);
    return timesOf(3, 4, 5);
  }, createClock());
  expect([await times.timeOf(event(3)), await times.timeOf(event(4)), await times.timeOf(event(5))]).toEqual(
    [3, 4, 5].map(at),
  );
  expect(asked).toEqual([2]);
});

it('asks for the events of a stream no more than ten times a second', async () => {
  const clock = createClock();
  const times = new EventTimes(async (after) => timesOf(after + 1), clock);
  for (const sequence of [1, 2, 3]) expect(await times.timeOf(event(sequence))).toEqual(at(sequence));
  expect(clock.sleeps).toEqual([100, 100]);
});

it('goes on without times when the server refuses, and asks again a second later', async () => {
  const clock = createClock();
  let isRefusing = true;
  let asked = 0;
  const times = new EventTimes(async (after) => {
    asked += 1;
    if (isRefusing) throw new Error('429');
    return timesOf(after + 1);
  }, clock);
  expect([await times.timeOf(event(1)), await times.timeOf(event(2))]).toEqual([undefined, undefined]);
  expect([asked, clock.sleeps]).toEqual([1, []]);
  isRefusing = false;
  await clock.sleep(1_000);
  expect(await times.timeOf(event(3))).toEqual(at(3));
});

it('does not ask a server of an earlier release again', async () => {
  let asked = 0;
  const times = new EventTimes(async () => void (asked += 1), createClock());
  expect([await times.timeOf(event(1)), await times.timeOf(event(2))]).toEqual([undefined, undefined]);
  expect(asked).toBe(1);
});
