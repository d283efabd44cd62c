/** The first characters of a text, at most `max`. It is cut between two characters, never inside of a surrogate pair. */
export const firstCharacters = (text: string, max: number): string => {
  const isInsidePair = text.length > max && (text.codePointAt(max - 1) ?? 0) > 0xffff;
  return text.slice(0, isInsidePair ? max - 1 : max);
};

/** The text as far as an error quotes it: if it is longer than `max`, its start and an ellipsis. */
export const shortened = (text: string, max: number): string =>
  text.length <= max ? text : `${firstCharacters(text, max)}…`;
