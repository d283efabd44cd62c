/** A member of an object or function that an author has written. Undefined: there is none. */
export const property = (value: unknown, key: string): unknown =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'
    ? (value as Record<string, unknown>)[key]
    : undefined;
