/** A failure whose message is meant for the caller. */
export class TurnFailure extends Error {
  constructor(
    message: string,
    /** The limit of the tenant that the agent exceeded. */
    readonly limit?: string,
    /** `cause`: shown to the operator and the agent's author only. */
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
