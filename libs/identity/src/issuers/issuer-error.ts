/** Why the keys of an issuer cannot be read. The message is for operators. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError';
}
