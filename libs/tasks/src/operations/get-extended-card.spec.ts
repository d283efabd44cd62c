import {
  type Agent,
  type CallContext,
  errorWire,
  PROFILES,
  ProtocolError,
  rulesFor,
  type Scope,
} from '@baton/a2a';
import { getExtendedAgentCard } from './get-extended-card.js';

const { spec } = PROFILES;
type Extended = Agent['definition']['extended'];

const ask = (method: string, extended: Extended, scopes: readonly Scope[] = ['agents:call']) =>
  getExtendedAgentCard({
    agent: {
      slug: 'echo',
      definition: { name: 'Echo', description: 'Echoes', skills: [], extended },
    } as unknown as Agent,
    scopes,
    rules: rulesFor(spec, spec.codecFor(method)!),
    buildCard: async ({ definition: { description } }) => ({ description }) as never,
  } satisfies Partial<CallContext>);

async function refusalOf(...asked: Parameters<typeof ask>): Promise<ProtocolError> {
  const refusal: unknown = await ask(...asked).catch((error: unknown) => error);
  if (!(refusal instanceof ProtocolError)) throw new Error('not refused');
  return refusal;
}

describe('an extended card that the card does not declare', () => {
  const codeOf = async (method: string) =>
    errorWire((await refusalOf(method, undefined)).kind, spec.errors).code;

  it('is an operation that is not supported (A2A 1.0 §3.3.4)', async () => {
    expect(await codeOf('GetExtendedAgentCard')).toBe(-32004);
  });

  it('is not configured for callers of 0.3, whose version has that error alone (0.3 §8.2)', async () => {
    expect(await codeOf('agent/getAuthenticatedExtendedCard')).toBe(-32007);
  });
});

describe('an extended card', () => {
  const extended = { description: 'Echoes twice', skills: [] };

  it('is what the agent declares besides its card', async () => {
    expect(await ask('GetExtendedAgentCard', extended)).toEqual({ description: 'Echoes twice' });
  });

  it('is for callers with one of the scopes that the agent names, and for `admin`', async () => {
    const guarded = { ...extended, scopes: ['agents:write', 'tasks:approve'] as Scope[] };
    expect(await refusalOf('GetExtendedAgentCard', guarded)).toMatchObject({
      kind: 'forbidden',
      message: 'the token lacks the scope agents:write or tasks:approve',
    });
    await expect(ask('GetExtendedAgentCard', guarded, ['tasks:approve'])).resolves.toBeDefined();
    await expect(ask('GetExtendedAgentCard', guarded, ['admin'])).resolves.toBeDefined();
  });
});
