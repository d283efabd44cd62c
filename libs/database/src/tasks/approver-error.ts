/** The token that approves was revoked or has lost the right, or the issuer of the user is no longer trusted. */
export class ApproverError extends Error {
  override readonly name = 'ApproverError';
}
