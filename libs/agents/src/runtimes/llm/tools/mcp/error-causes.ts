interface Cause {
  message: string;
  code?: unknown;
  cause?: unknown;
}

/** The error and its causes: fetch wraps errors. */
export function causesOf(error: unknown): Cause[] {
  const chain: Cause[] = [];
  let cause = error;
  while (typeof cause === 'object' && cause !== null && 'message' in cause && chain.length < 10) {
    chain.push(cause as Cause);
    cause = (cause as Cause).cause;
  }
  return chain;
}

/** Error codes of the system and the HTTP client. Codes of the protocol are numbers. */
export const codesOf = (error: unknown): string[] =>
  causesOf(error).flatMap(({ code }) => (typeof code === 'string' ? [code] : []));
