/** The log has lost events that its reader has not read: the task was deleted. */
export class LogDeletedError extends Error {
  override readonly name = 'LogDeletedError';
}
