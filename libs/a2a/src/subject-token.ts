/**
 * The access token with which a user of an issuer has sent a message. It may go to this issuer alone. It is in no log, no JSON and
 * no queue, and is never stored.
 */
export class SubjectToken {
  readonly #value: string;

  /** @param issuer its claim `iss`: the issuer that has made it */
  constructor(
    readonly issuer: string,
    value: string,
  ) {
    this.#value = value;
  }

  /** The token, for the issuer itself. */
  reveal(): string {
    return this.#value;
  }
}
