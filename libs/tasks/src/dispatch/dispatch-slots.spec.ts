import { DispatchSlots, capacityOf, freeDispatchSlots } from './dispatch-slots.js';

/** A reading: so many runs of one tenant are in flight, and who waits. */
const look = (workerSlots: number, runs: number, ...waiting: string[]) => ({
  workerSlots,
  reservedSlots: 0,
  workers: ['one', 'two'],
  inFlight: new Map([['flooding', runs]]), // prettier-ignore
  waiting: new Map(waiting.map((tenantId) => [tenantId, {}])),
});
const takeAll = (slots: DispatchSlots): number => {
  let taken = 0;
  while (slots.take()) taken += 1;
  return taken;
};

describe('dispatch slots', () => {
  let now: number;
  let slots: DispatchSlots;
  beforeEach(() => {
    now = 5_000;
    slots = new DispatchSlots(() => now);
  });

  it('are a few more than the worker slots, so that a refill comes in time', () => {
    expect([0, 4, 20, 100].map(capacityOf)).toEqual([4, 8, 30, 150]);
    expect(freeDispatchSlots(look(20, 25))).toBe(5);
    expect(freeDispatchSlots(look(20, 99))).toBe(0);
  });

  it('that are free go to new runs by half, the rest to other processes', () => {
    slots.update(look(20, 10), 0);
    expect(slots.isRunningLow).toBe(false);
    expect(takeAll(slots)).toBe(10);
    expect(slots.isRunningLow).toBe(true);
    slots.update(look(20, 10), 20);
    expect(slots.isFull).toBe(true);
    expect(takeAll(slots)).toBe(0);
  });

  it('count as free once after a long time without a look', () => {
    slots.update(look(20, 30), 0);
    expect(takeAll(slots)).toBe(0);
    now += 1_500;
    expect(slots.age).toBe(1_500);
    expect(takeAll(slots)).toBe(15);
    now += 1_500;
    expect(takeAll(slots)).toBe(0);
    slots.update(look(20, 0), 0);
    expect(takeAll(slots)).toBe(15);
  });

  it('of workers that are free go to runs that are claimed as they are made', () => {
    slots.update(look(8, 5), 0);
    const taken = Array.from({ length: 4 }, () => slots.takeWorker());
    expect(taken).toEqual(['one', 'two', 'one', undefined]);
    // It looks for others soon, but not with every run.
    expect(slots.isRunningLow).toBe(false);
    now += 21;
    expect(slots.isRunningLow).toBe(true);
    // The others are a reserve on the queue.
    slots.update(look(8, 8), 0);
    expect([slots.takeWorker(), slots.take()]).toEqual([undefined, true]);
    slots.update(look(8, 2), 0);
    now += 1_500;
    expect([slots.takeWorker(), slots.take()]).toEqual([undefined, true]);
  });

  it('that are reserved are for no run that is dispatched or claimed because slots are free', () => {
    const seen = { ...look(20, 0), reservedSlots: 4 };
    expect(freeDispatchSlots(seen)).toBe(16 + 8);
    slots.update(seen, 0);
    expect(Array.from({ length: 20 }, () => slots.takeWorker()).filter(Boolean)).toHaveLength(16);
    expect(slots.areReserved).toBe(true);
    slots.update({ ...look(20, 16), reservedSlots: 4 }, 0);
    expect(slots.takeWorker()).toBeUndefined();
  });

  it('that are reserved are for a tenant with few runs in flight, which may have a quarter of them', () => {
    const fewOf = (reservedSlots: number) => {
      slots.update({ ...look(200, 0), reservedSlots }, 0);
      return slots.reserveUpTo;
    };
    expect([0, 1, 7, 8, 12, 24].map(fewOf)).toEqual([1, 1, 1, 2, 3, 4]);
  });

  it('leave room for a tenant with few runs in flight, as far as the reserve goes', () => {
    const without = (inFlight: number) => {
      slots.update({ ...look(212, inFlight), reservedSlots: 12 }, 0);
      return [slots.isFull, slots.withoutSlot];
    };
    expect([299, 300, 311, 312].map(without)).toEqual([
      [false, 3],
      [true, 3],
      [true, 3],
      [true, 1],
    ]);
  });

  it('that a run leaves are wanted by waiting runs', () => {
    slots.update(look(20, 30, 'limited'), 0);
    expect(['limited', 'flooding'].map((tenant) => slots.isWantedBy(tenant))).toEqual([true, true]);
    // Others have room: what waits, waits for its own tenant's limit.
    slots.update(look(20, 3, 'limited'), 0);
    expect(['limited', 'flooding'].map((tenant) => slots.isWantedBy(tenant))).toEqual([true, false]);
    slots.update(look(20, 30), 0);
    expect(slots.isWantedBy('flooding')).toBe(false);
  });
});
