/** A model call exceeded a timeout of the agent's settings. */
export class ModelTimeout extends Error {
  constructor(
    readonly setting: 'timeout' | 'firstToken' | 'stall',
    readonly ms: number,
  ) {
    super(`${setting} of ${ms} ms`);
  }
}
