/** A tenant has exceeded its token limit. The message names the limit and the remedy. */
export class TokensExceeded extends Error {
  override readonly name = 'TokensExceeded';
}
