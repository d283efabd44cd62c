import { DRIVERS } from './redis.js';

/** Whether this is the Jest project `nightly`: then a test runs its long form (CONTRIBUTING.md#tests-of-every-night). */
export const NIGHTLY = process.env.TEST_PROJECT === 'nightly';

/**
 * The messaging drivers of a journey: by day the one that is named, or Postgres where there is no Redis; at night each. A file
 * that asks stands in LONGER_AT_NIGHT of jest.config.js.
 */
export const driversOf = (byDay: (typeof DRIVERS)[number]): typeof DRIVERS =>
  NIGHTLY || !DRIVERS.includes(byDay) ? DRIVERS : [byDay];

/** The messaging driver of a journey that runs on one at a time: Postgres by day, Redis at night, if there is one. */
export const DRIVER = NIGHTLY ? DRIVERS[0]! : 'postgres';

/** Declares nothing: what is left out by day is not there, so that no report calls it skipped. */
const leftOut = Object.assign(() => undefined, { each: () => () => undefined });

/** `it` and `describe` of what runs at night alone, in a file of LONGER_AT_NIGHT. */
export const nightlyIt = (NIGHTLY ? it : leftOut) as typeof it;
export const nightlyDescribe = (NIGHTLY ? describe : leftOut) as typeof describe;
