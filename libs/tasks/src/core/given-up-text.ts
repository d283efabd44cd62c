import type { Crashes } from '@baton/database';

/** The reason that callers and operators read for a run without attempts left. */
export function givenUpText({ crashCount, lastCrash }: Crashes): string {
  const died = 'the worker died or stopped answering';
  if (crashCount === 1) return `Given up after one attempt: ${lastCrash ?? died}`;
  const givenUp = `Given up after ${crashCount.toString()} attempts`;
  return lastCrash ? `${givenUp}. The last one: ${lastCrash}` : `${givenUp}: each time ${died}`;
}
