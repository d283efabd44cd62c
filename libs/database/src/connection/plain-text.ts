/** The text as Postgres can store it: a column of the type text has no U+0000. */
export const plainText = (text: string): string => text.replaceAll('\0', '\uFFFD');
