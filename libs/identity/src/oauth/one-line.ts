/** Characters of the words of an authorization server in an error. */
const MAX_SAID = 200;

/** A text of an authorization server in one line. */
export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').slice(0, MAX_SAID);
