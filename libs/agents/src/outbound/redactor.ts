/** Minimum length of a secret. A shorter one would match inside ordinary words. */
const SHORTEST = 4;

/** Removes an agent's secrets from texts of other servers, which may quote their requests. */
export class Redactor {
  private readonly forms: readonly string[];

  /**
   * @param secrets the values that were sent
   * @param replacement the text in their place
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
    // The longest first, because a form may be part of another one.
    this.forms = [...new Set(forms)].sort((a, b) => b.length - a.length);
  }

  text(text: string): string {
    return this.forms.reduce((clean, form) => clean.replaceAll(form, this.replacement), text);
  }
}

/** A redactor for calls without secrets. */
export const NOTHING_SECRET = new Redactor([]);
