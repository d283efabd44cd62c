import type { Environment } from '@baton/config';
import fc from 'fast-check';
import { ReservedSlots } from './reserved-slots.js';

const slotsOf = (workerConcurrency: number, reservedSlotsPercent = 12): ReservedSlots =>
  new ReservedSlots({ workerConcurrency, reservedSlotsPercent } as Environment);

/** The reserved slots of workers with so many slots each, the eldest first. */
function sharesOf(workers: readonly number[], percent?: number): number[] {
  const all = workers.reduce((sum, slots) => sum + slots, 0);
  return workers.map((own, i) => {
    const elderSlots = workers.slice(0, i).reduce((sum, slots) => sum + slots, 0);
    const slots = slotsOf(own, percent);
    slots.shareWith({ otherSlots: all - own, elderSlots });
    return slots.count;
  });
}

describe('the reserved slots of a worker', () => {
  it('are its share of those of all workers, of which the eldest has the first', () => {
    expect(sharesOf([100, 100])).toEqual([12, 12]);
    expect(sharesOf([100])).toEqual([12]);
    expect(sharesOf([2, 2])).toEqual([1, 0]);
    expect(sharesOf([1, 1, 1, 1])).toEqual([1, 0, 0, 0]);
  });

  it('are none while there are few slots, or if the operator turns them off', () => {
    expect([...sharesOf([1]), ...sharesOf([1, 1]), ...sharesOf([3])]).toEqual([0, 0, 0, 0]);
    expect(sharesOf([100, 100], 0)).toEqual([0, 0]);
  });

  it('add up to the reserve, and leave slots for the other runs', () => {
    const fleets = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fleets, fc.integer({ min: 1, max: 50 }), (workers, percent) => {
        const all = workers.reduce((sum, slots) => sum + slots, 0);
        const reserved = sharesOf(workers, percent).reduce((sum, slots) => sum + slots, 0);
        expect(reserved).toBe(all < 4 ? 0 : Math.max(1, Math.floor((all * percent) / 100)));
        expect(reserved).toBeLessThan(all);
      }),
    );
  });

  it('are for a tenant that has few runs in the worker, more of them where more slots are reserved', () => {
    const perTenant = (workerConcurrency: number): number[] => {
      const heard: number[] = [];
      slotsOf(workerConcurrency).onChange((reserve) => heard.push(reserve.perTenant));
      return heard;
    };
    expect([4, 20, 100, 1000].flatMap(perTenant)).toEqual([2, 2, 6, 8]);
  });

  it('change when workers come and go', () => {
    const slots = slotsOf(2);
    const heard: number[] = [];
    slots.onChange((reserve) => heard.push(reserve.slots));
    slots.shareWith({ otherSlots: 2, elderSlots: 0 });
    slots.shareWith({ otherSlots: 4, elderSlots: 0 });
    slots.shareWith({ otherSlots: 0, elderSlots: 0 });
    expect(heard).toEqual([0, 1, 0]);
  });
});
