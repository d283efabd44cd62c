/** A failure about one task. The message names the task. */
export class OfTaskError extends Error {
  override readonly name = 'OfTaskError';

  constructor(
    readonly taskId: string,
    cause: unknown,
  ) {
    super(`Task ${taskId}`, { cause });
  }
}
