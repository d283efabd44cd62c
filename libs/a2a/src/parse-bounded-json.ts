/**
 * The value of a JSON text from outside that is within bounds already: the outbound guard has read it, or `jsonExcess`. Undefined: it is
 * not JSON. `parseJsonBody` is for texts that have no bounds yet.
 */
export function parseBoundedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
