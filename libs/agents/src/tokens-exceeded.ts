/** A tenant has exceeded its token limit or a spending cap. The message names the limit and the remedy. */
export class TokensExceeded extends Error {
  override readonly name = 'TokensExceeded';
}
