/** A field of a form as text, without spaces around it. Undefined if it is empty. */
export function textField(fields: FormData, name: string): string | undefined {
  const value = fields.get(name);
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

/** The words of a field, separated by commas or spaces. Undefined: the field is empty. */
export const wordsField = (fields: FormData, name: string): string[] | undefined =>
  textField(fields, name)
    ?.split(/[\s,]+/)
    .filter(Boolean);
