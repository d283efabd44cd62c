import { messageOf } from '@baton/telemetry';

/** Why `npm start` cannot continue: one plain sentence with the remedy, shown as it is. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Adds a remedy for the person at the terminal to the rejection of a promise. */
export const withRemedy = <T>(promise: Promise<T>, remedy: string): Promise<T> =>
  promise.catch((error: unknown) => {
    throw new StartError(`${messageOf(error)}. ${remedy}`);
  });
