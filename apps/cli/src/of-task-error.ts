/** Something failed that was about one task. Its sentence names the task. */
export class OfTaskError extends Error {
  override readonly name = 'OfTaskError';

  constructor(
    readonly taskId: string,
    cause: unknown,
  ) {
    super(`Task ${taskId}`, { cause });
  }
}
