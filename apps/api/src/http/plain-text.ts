import { ProtocolError } from '@baton/a2a';

/** Control characters, other than tab and line breaks. */
// oxlint-disable-next-line no-control-regex -- these are refused
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const REMEDY =
  'must not contain control characters, such as U+0000, or half of a surrogate pair: remove them';

const isPlain = (text: string): boolean => !CONTROLS.test(text) && !/\p{Surrogate}/u.test(text);

/**
 * Check every text in a value, with the names of its members. Postgres cannot store U+0000, and UTF-8 has no lone surrogates.
 * Throws `invalid-params`, which names the field.
 * @param field the name of the value; '' = it is a whole body
 */
export function assertPlainText(value: unknown, field: string): void {
  if (typeof value === 'string' && !isPlain(value)) throw ProtocolError.invalidParams(field, REMEDY);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    // A name that is not plain is not repeated in the error.
    if (!isPlain(name)) throw ProtocolError.invalidParams(field, `has a member whose name ${REMEDY}`);
    const path = Array.isArray(value) ? `${field}[${name}]` : field === '' ? name : `${field}.${name}`;
    assertPlainText(member, path);
  }
}
