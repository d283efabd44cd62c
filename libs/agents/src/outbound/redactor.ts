/** A shorter one would be found in words that have nothing to do with it. */
const SHORTEST = 4;

/** Takes an agent's secrets out of texts of others, which may quote what they were sent. */
export class Redactor {
  private readonly forms: readonly string[];

  /**
   * @param secrets their values, as they are sent
   * @param replacement stands in their place
   */
  constructor(
    secrets: Iterable<string>,
    private readonly replacement = '[secret]',
  ) {
    const forms = [...secrets]
      .filter((secret) => secret.length >= SHORTEST)
      .flatMap((secret) => [
        secret,
        encodeURIComponent(Buffer.from(secret).toString()),
        JSON.stringify(secret).slice(1, -1),
        Buffer.from(secret)
          .toString('base64')
          .replace(/={1,2}$/, ''),
      ]);
    // The longest first: one may be part of another.
    this.forms = [...new Set(forms)].sort((a, b) => b.length - a.length);
  }

  text(text: string): string {
    return this.forms.reduce((clean, form) => clean.replaceAll(form, this.replacement), text);
  }
}

/** For calls that carry no secret. */
export const NOTHING_SECRET = new Redactor([]);
