import { FAULT_NAMES, faultsOn, planFaults } from './fault-plan.js';
import { readOptions } from './options.js';
import { Random } from './random.js';

const seed = new Random('plan');

describe('a plan of faults', () => {
  it.each(['redis', 'postgres'] as const)('has every kind of %s before any comes again', (driver) => {
    const names = faultsOn(driver);
    const plan = planFaults(seed, 2 * names.length, driver).map(({ name }) => name);
    expect(plan.slice(0, names.length).sort()).toEqual([...names].sort());
    expect(plan.slice(names.length).sort()).toEqual([...names].sort());
  });

  it('has the kinds that were asked for, and no others', () => {
    const { only } = readOptions(['--only', 'content,kill-api']);
    const plan = planFaults(seed, 50, 'postgres', only).map(({ name }) => name);
    expect(new Set(plan)).toEqual(new Set(only));
    expect(plan).toContain('frozen-loop');
    expect(plan).not.toContain('kill-worker');
  });

  it('is as long as its pauses', () => {
    const lasts = (pauses?: number) => planFaults(seed, 20, 'redis', undefined, pauses).at(-1)!.at - 1500;
    expect(lasts(50)).toBeCloseTo(lasts() / 2);
    expect(lasts(0)).toBe(0);
  });

  it('is refused where there is no such kind', () => {
    expect(() => readOptions(['--only', 'content,kill-bill'])).toThrow('there is no fault kill-bill');
    expect(() => planFaults(seed, 1, 'postgres', ['flush-redis'])).toThrow('no fault flush-redis');
    expect(readOptions(['--only', 'processes,content']).only).toEqual(FAULT_NAMES);
  });
});
