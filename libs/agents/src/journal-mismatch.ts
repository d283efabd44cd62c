/**
 * Thrown by a runtime whose code does not fit the journal of the task: the code has changed since an earlier attempt. Nothing is wrong
 * with the task. So its run is parked: it waits for other code, or until a person lets it continue.
 */
export class JournalMismatch extends Error {
  override readonly name = 'JournalMismatch';

  /**
   * @param agent slug of the agent
   * @param problem how the code differs, for the author of the agent
   * @param code hash of the code; undefined = unknown
   */
  constructor(
    readonly agent: string,
    readonly problem: string,
    readonly code: string | undefined,
  ) {
    super(problem);
  }
}
