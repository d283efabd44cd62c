import { type CallContext, errorWire, PROFILES, ProtocolError, rulesFor } from '@baton/a2a';
import { OperationTable } from './operation-table.js';

const { spec } = PROFILES;
const { operations } = new OperationTable({} as never, {} as never, {} as never, {} as never);

/** The code that a caller gets who asks an agent without an extended card for it. */
async function codeOf(method: string): Promise<number> {
  const call = { rules: rulesFor(spec, spec.codecFor(method)!) } as CallContext;
  const refusal: unknown = await operations
    .getExtendedAgentCard(call, {}, AbortSignal.abort())
    .catch((error: unknown) => error);
  if (!(refusal instanceof ProtocolError)) throw new Error('not refused');
  return errorWire(refusal.kind, spec.errors).code;
}

describe('an extended card that the card does not declare', () => {
  it('is an operation that is not supported (A2A 1.0 §3.3.4)', async () => {
    expect(await codeOf('GetExtendedAgentCard')).toBe(-32004);
  });

  it('is not configured for callers of 0.3, whose version has that error alone (0.3 §8.2)', async () => {
    expect(await codeOf('agent/getAuthenticatedExtendedCard')).toBe(-32007);
  });
});
