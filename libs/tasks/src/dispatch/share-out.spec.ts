import fc from 'fast-check';
import { type Claimant, shareOut } from './share-out.js';

const claimant = (tenantId: string, more: Partial<Claimant> = {}): Claimant => ({
  tenantId,
  weight: 1,
  inFlight: 0,
  maxInFlight: null,
  ...more,
});

describe('free slots', () => {
  it('all go to a tenant that is alone', () => {
    expect(shareOut(20, [claimant('a', { inFlight: 5 })])).toEqual(new Map([['a', 20]]));
  });

  it('go first to the tenant that has least', () => {
    const flooding = claimant('a', { inFlight: 20 });
    expect(shareOut(3, [flooding, claimant('b')])).toEqual(new Map([['b', 3]]));
    expect(shareOut(24, [flooding, claimant('b')]).get('b')).toBe(22);
  });

  it('are shared by weight', () => {
    const shares = shareOut(40, [claimant('a'), claimant('b', { weight: 3 })]);
    expect(shares).toEqual(new Map([['a', 10], ['b', 30]])); // prettier-ignore
  });

  it('that a tenant may not use go to the others', () => {
    const shares = shareOut(10, [
      claimant('a', { maxInFlight: 3, inFlight: 1 }),
      claimant('b', { inFlight: 9 }),
    ]);
    expect(shares).toEqual(new Map([['a', 2], ['b', 8]])); // prettier-ignore
    expect(shareOut(10, [claimant('a', { maxInFlight: 3, inFlight: 7 })])).toEqual(new Map());
  });

  it('that are too few for all prefer no tenant', () => {
    const tenants = Array.from({ length: 50 }, (_, i) => claimant(`t${i}`));
    const seen = new Set(Array.from({ length: 2000 }, () => [...shareOut(1, tenants).keys()][0]));
    expect(seen.size).toBe(50);
  });
});

describe('every share', () => {
  const anyClaimant = fc.record({
    weight: fc.integer({ min: 1, max: 1000 }),
    inFlight: fc.integer({ min: 0, max: 50 }),
    maxInFlight: fc.option(fc.integer({ min: 1, max: 60 })),
  });
  const anyClaimants = fc
    .array(anyClaimant, { maxLength: 20 })
    .map((all) => all.map((one, i) => claimant(`t${i}`, one)));
  const roomOf = ({ inFlight, maxInFlight }: Claimant): number =>
    maxInFlight === null ? Infinity : Math.max(0, maxInFlight - inFlight);

  it('no slot stays free while a tenant may use it, and no tenant gets more than it may', () => {
    fc.assert(
      fc.property(fc.nat(200), anyClaimants, (slots, claimants) => {
        const shares = shareOut(slots, claimants);
        const given = [...shares.values()].reduce((sum, n) => sum + n, 0);
        const usable = claimants.reduce((sum, one) => sum + roomOf(one), 0);
        expect(given).toBe(Math.min(slots, usable));
        for (const one of claimants) {
          expect(shares.get(one.tenantId) ?? 0).toBeLessThanOrEqual(roomOf(one));
        }
      }),
    );
  });

  it('no tenant has a slot that another with less for its weight should have', () => {
    fc.assert(
      fc.property(fc.nat(200), anyClaimants, (slots, claimants) => {
        const shares = shareOut(slots, claimants);
        const got = (one: Claimant): number => shares.get(one.tenantId) ?? 0;
        for (const giver of claimants.filter((one) => got(one) > 0)) {
          for (const taker of claimants.filter((one) => one !== giver && got(one) < roomOf(one))) {
            const givers = (giver.inFlight + got(giver)) / giver.weight;
            const takers = (taker.inFlight + got(taker) + 1) / taker.weight;
            expect(givers).toBeLessThanOrEqual(takers);
          }
        }
      }),
    );
  });
});
