/**
 * Thrown by a runtime to wait until other tasks end their turns or ask for input, or until a time has passed. Meanwhile the
 * run uses no worker and no slot. Then it runs again as the next attempt.
 */
export class Suspension extends Error {
  override readonly name = 'Suspension';

  /**
   * @param taskIds the tasks; may be empty if there is a time
   * @param wakeInMs continue after this time at the latest, in ms
   */
  constructor(
    readonly taskIds: readonly string[],
    readonly wakeInMs?: number,
  ) {
    super('The turn waits');
  }
}
