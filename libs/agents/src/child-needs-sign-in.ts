/** A child task waits for a sign-in of its caller, who is that of the parent. */
export class ChildNeedsSignIn extends Error {
  override readonly name = 'ChildNeedsSignIn';

  constructor(
    readonly childTaskId: string,
    /** The reason, in the child's words. */
    readonly reason: string,
  ) {
    super(reason);
  }
}
