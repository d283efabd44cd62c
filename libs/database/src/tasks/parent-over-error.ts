/** The run that asks for a child no longer owns its task, or the task has ended. */
export class ParentOverError extends Error {
  override readonly name = 'ParentOverError';
}
