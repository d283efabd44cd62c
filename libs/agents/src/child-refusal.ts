/** A child was refused. The message is for the calling agent, in plain words. */
export class ChildRefusal extends Error {
  override readonly name = 'ChildRefusal';
}
