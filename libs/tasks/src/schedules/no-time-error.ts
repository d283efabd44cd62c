/** The next time of a schedule cannot be computed. The message is a clause about its cron expression. */
export class NoTimeError extends Error {
  override readonly name = 'NoTimeError';
}
