/** The value of an answer of a remote agent. Undefined: it is no JSON. */
export function parseAnswer(text: string): unknown {
  try {
    // oxlint-disable-next-line no-restricted-properties -- the guard has bounded the text and its depth
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
