import { wellFormedJson } from '@baton/a2a';

/**
 * The request with U+FFFD in place of each half of a surrogate pair in its JSON. Other servers refuse them, and the output of a
 * model or a tool may have one.
 */
export const wellFormedRequest = <Init extends { body?: unknown }>(
  init: Init | undefined,
): Init | undefined => (typeof init?.body === 'string' ? { ...init, body: wellFormedJson(init.body) } : init);
