/**
 * A sign-in that fails. The message is for people.
 * - `refused`: the authorization server refuses the grant or the client. A retry fails, too.
 * - `unusable`: its answers, or its addresses, cannot be used.
 * - `unreached`: it cannot be reached for now.
 */
export class OAuthFailure extends Error {
  override readonly name = 'OAuthFailure';

  constructor(
    readonly kind: 'refused' | 'unusable' | 'unreached',
    message: string,
    /** `error` of its answer (RFC 6749, section 5.2). */
    readonly code?: string,
  ) {
    super(message);
  }
}
