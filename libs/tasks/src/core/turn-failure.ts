import type { Crashes } from '@baton/database';

/** The reason that callers and operators read for a run without attempts left. */
export function givenUpText({ crashCount, lastCrash }: Crashes): string {
  const died = 'the worker died or stopped answering';
  if (crashCount === 1) return `Given up after one attempt: ${lastCrash ?? died}`;
  const givenUp = `Given up after ${crashCount.toString()} attempts`;
  return lastCrash ? `${givenUp}. The last one: ${lastCrash}` : `${givenUp}: each time ${died}`;
}

/** A failure whose message is meant for the caller. */
export class TurnFailure extends Error {
  constructor(
    message: string,
    /** The limit of the tenant that the agent exceeded. */
    readonly limit?: string,
    /** `cause`: shown to the operator and the agent's author only. */
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
