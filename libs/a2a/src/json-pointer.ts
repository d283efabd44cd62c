/** The member that a step of a JSON pointer names (RFC 6901 §4): `a~1b` is `a/b`. */
export const memberOf = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~');
