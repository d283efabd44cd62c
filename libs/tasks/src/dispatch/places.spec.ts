import { Places, capacityOf, freePlaces } from './places.js';

/** A look: `out` runs of one tenant, and who waits. */
const look = (slots: number, out: number, ...waiting: string[]) => ({
  slots,
  out: new Map([['flooding', out]]), // prettier-ignore
  waiting: new Map(waiting.map((tenantId) => [tenantId, {}])),
});
const takeAll = (places: Places): number => {
  let taken = 0;
  while (places.take()) taken += 1;
  return taken;
};

describe('places', () => {
  let now: number;
  let places: Places;
  beforeEach(() => {
    now = 5_000;
    places = new Places(() => now);
  });

  it('are a few more than the slots, so that a refill comes in time', () => {
    expect([0, 4, 20, 100].map(capacityOf)).toEqual([4, 8, 30, 150]);
    expect(freePlaces(look(20, 25))).toBe(5);
    expect(freePlaces(look(20, 99))).toBe(0);
  });

  it('that are free go to new runs by half, the rest to other processes', () => {
    places.update(look(20, 10), 0);
    expect(places.isRunningLow).toBe(false);
    expect(takeAll(places)).toBe(10);
    expect(places.isRunningLow).toBe(true);
    places.update(look(20, 10), 20);
    expect(places.isFull).toBe(true);
    expect(takeAll(places)).toBe(0);
  });

  it('are taken for free once when nobody has looked for long', () => {
    places.update(look(20, 30), 0);
    expect(takeAll(places)).toBe(0);
    now += 1_500;
    expect(places.age).toBe(1_500);
    expect(takeAll(places)).toBe(15);
    now += 1_500;
    expect(takeAll(places)).toBe(0);
    places.update(look(20, 0), 0);
    expect(takeAll(places)).toBe(15);
  });

  it('that a run leaves are wanted by whoever waits for one', () => {
    places.update(look(20, 30, 'limited'), 0);
    expect(['limited', 'flooding'].map((tenant) => places.isWantedBy(tenant))).toEqual([true, true]);
    // Others have room: what waits, waits for its own tenant's limit.
    places.update(look(20, 3, 'limited'), 0);
    expect(['limited', 'flooding'].map((tenant) => places.isWantedBy(tenant))).toEqual([true, false]);
    places.update(look(20, 30), 0);
    expect(places.isWantedBy('flooding')).toBe(false);
  });
});
