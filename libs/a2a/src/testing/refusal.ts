import { ProtocolError } from '../errors.js';

/** The field an `invalid-params` refusal names; checks that its message names it too and says what to do. */
export function refusalOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.kind !== 'invalid-params') throw error;
    const [violation] = error.detail.violations ?? [];
    if (!violation || error.message !== `${violation.field}: ${violation.description}`) throw error;
    return violation.field;
  }
  return undefined;
}
