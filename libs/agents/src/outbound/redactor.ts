/** Minimum length of a secret. A shorter one would match inside ordinary words. */
const SHORTEST = 4;
/** Minimum length of a part or another spelling of a secret, for the same reason. */
const SHORTEST_PART = 8;

/** Removes secrets from texts of other servers, which may quote their requests, also in usual encodings. */
export class Redactor {
  private readonly forms: readonly SecretForm[];

  /**
   * @param secrets the values that were sent
   * @param replacement the text in their place
   */
  constructor(
    secrets: Iterable<string>,
    private readonly replacement = '[secret]',
  ) {
    const texts = [...secrets].filter((secret) => secret.length >= SHORTEST).flatMap(formsOf);
    // The longest first, because a form may be part of another one.
    this.forms = [...new Set(texts)].sort((a, b) => b.length - a.length).map((text) => new SecretForm(text));
  }

  /** Whether there is nothing to remove. */
  get isEmpty(): boolean {
    return this.forms.length === 0;
  }

  text(text: string): string {
    return this.forms.reduce((clean, { text: form }) => clean.replaceAll(form, this.replacement), text);
  }

  /** Removes secrets from bytes, such as a file. */
  bytes(bytes: Buffer): Buffer {
    if (!this.forms.some(({ bytes: form }) => bytes.includes(form))) return bytes;
    const clean = this.forms.reduce(
      (latin, { bytes: form }) => latin.replaceAll(form.toString('latin1'), this.replacement),
      bytes.toString('latin1'),
    );
    return Buffer.from(clean, 'latin1');
  }

  /** A copy of a JSON value without secrets, in strings, keys and bytes. Objects of other classes stay as they are. */
  value<T>(value: T): T {
    return (this.isEmpty ? value : this.clean(value)) as T;
  }

  private clean(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (value instanceof Uint8Array)
      return this.bytes(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    if (Array.isArray(value)) return value.map((each) => this.clean(each));
    if (typeof value !== 'object' || value === null || !isPlain(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [this.text(key), this.clean(each)]));
  }

  /**
   * Removes secrets from an error and its causes: message, stack and plain fields. The error keeps its class.
   * @returns the same error
   */
  error(error: unknown): unknown {
    if (typeof error === 'string') return this.text(error);
    for (let cause = error, depth = 0; cause instanceof Error && depth < 10; cause = cause.cause, depth++) {
      const fields = cause as unknown as Record<string, unknown>;
      for (const key of ['message', 'stack', ...Object.keys(cause)]) {
        // A field that cannot be written stays. The log removes secrets again.
        if (fields[key] !== undefined) Reflect.set(fields, key, this.value(fields[key]));
      }
    }
    return error;
  }

  /**
   * Splits a text that continues: `ready` is without secrets, `held` may be the beginning of a secret and must precede the next text.
   * `held` is shorter than the longest form of a secret.
   */
  split(text: string): { ready: string; held: string } {
    let end = text.length - Math.max(0, ...this.forms.map((form) => form.beginningAtEnd(text)));
    // Whatever begins at `end` must not cut a whole secret in two.
    for (let before = -1; before !== end;) {
      before = end;
      for (const { text: form } of this.forms) {
        const start = end === 0 ? -1 : text.lastIndexOf(form, end - 1);
        if (start >= 0 && start + form.length > end) end = start;
      }
    }
    return { ready: this.text(text.slice(0, end)), held: text.slice(end) };
  }
}

/** A redactor for calls without secrets. */
export const NOTHING_SECRET = new Redactor([]);

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

/** One spelling of a secret. */
class SecretForm {
  readonly bytes: Buffer;
  private table: Int32Array | undefined;

  constructor(readonly text: string) {
    this.bytes = Buffer.from(text);
  }

  /** Length of the longest end of `text` with which this form begins, without the whole form. Linear (Knuth, Morris, Pratt). */
  beginningAtEnd(text: string): number {
    this.table ??= bordersOf(this.text);
    let length = 0;
    for (let i = Math.max(0, text.length - this.text.length + 1); i < text.length; i++)
      length = grow(this.text, this.table, length, text.charCodeAt(i));
    return length;
  }
}

/** For each beginning of a text: the length of the longest shorter beginning that is also its end. */
function bordersOf(text: string): Int32Array {
  const table = new Int32Array(text.length);
  for (let i = 1; i < text.length; i++) table[i] = grow(text, table, table[i - 1] ?? 0, text.charCodeAt(i));
  return table;
}

function grow(text: string, table: Int32Array, matched: number, code: number): number {
  let length = matched;
  while (length > 0 && text.charCodeAt(length) !== code) length = table[length - 1] ?? 0;
  return text.charCodeAt(length) === code ? length + 1 : length;
}

/** The spellings in which a server may quote a secret. */
function formsOf(secret: string): string[] {
  const parts = [secret, ...partsOf(secret)];
  return parts.flatMap((part) => {
    const bytes = Buffer.from(part);
    const json = JSON.stringify(part).slice(1, -1);
    const url = encodeURIComponent(bytes.toString());
    const others = [
      url,
      url.replaceAll('%20', '+'),
      url.replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase()),
      json,
      json.replaceAll('/', '\\/'),
      inAscii(json),
      ...nestedJson(json),
      html(part),
      bytes.toString('base64').replace(/={1,2}$/, ''),
    ];
    const risky = [
      part.toLowerCase(),
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
      ...base64(bytes),
    ];
    return [part, ...others, ...risky.filter((form) => form.length >= SHORTEST_PART)];
  });
}

/** Parts of a secret that a server may quote: a line of a key, the password in credentials. */
function partsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/);
  const decoded = /^[\w+/-]{8,}={0,2}$/.test(secret) ? Buffer.from(secret, 'base64').toString() : '';
  const credentials = [secret, decoded].filter((text) => /^[^\s:]{1,256}:[^\p{Cc}\uFFFD]+$/u.test(text));
  const passwords = credentials.map((text) => text.slice(text.indexOf(':') + 1));
  return [...(lines.length > 1 ? lines : []), ...credentials, ...passwords]
    .map((part) => part.trim())
    .filter((part) => part.length >= SHORTEST_PART && part !== secret);
}

/** The characters that all Base64 texts with these bytes have in common, at each offset: `Bearer …`, `user:…`. */
function base64(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    const start = Math.ceil((offset * 8) / 6);
    const common = text.slice(start, Math.floor(((offset + bytes.length) * 8) / 6));
    return [common, common.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

/** JSON in a string of JSON, as in a log of an answer that quotes a request. */
function nestedJson(json: string): string[] {
  const twice = JSON.stringify(json).slice(1, -1);
  const thrice = JSON.stringify(twice).slice(1, -1);
  return [twice, thrice, JSON.stringify(thrice).slice(1, -1)];
}

const inAscii = (json: string): string =>
  json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const HTML: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const html = (text: string): string => text.replace(/[&<>"']/g, (character) => HTML[character] ?? character);
