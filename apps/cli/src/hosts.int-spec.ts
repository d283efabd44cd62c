import { baton, json, listen, refusal } from './operator.fixture.js';

describe('hosts', () => {
  beforeAll(async () => {
    await json('tenants create landlord');
    await json('tenants create squatter');
  });

  it('are bound, listed and unbound; every process is told', async () => {
    const { id: tenantId } = (await json<{ id: string; slug: string }[]>('tenants list')).find(
      ({ slug }) => slug === 'landlord',
    )!;
    expect((await baton('hosts list')).err).toMatch(/^No hosts are bound yet: npx baton hosts bind /);
    const received = await listen();
    const bound = await json('hosts bind Agents.Example.com:8443 --tenant landlord --agent echo --public');
    const binding = { host: 'agents.example.com', tenantId, agent: 'echo', public: true };
    expect(bound).toEqual({ ...binding, tenant: 'landlord' });
    expect(await json('hosts list')).toEqual([bound]);
    expect(await json('hosts list --tenant squatter')).toEqual([]);
    expect((await baton('hosts list --tenant landlord')).out).toMatch(
      /\nagents\.example\.com +landlord +echo +yes$/,
    );
    expect(await json('hosts unbind agents.example.com')).toEqual(binding);
    expect(await json('hosts list')).toEqual([]);
    expect(await received(2)).toEqual(Array(2).fill({ type: 'catalog-changed', tenantId }));
  });

  it('are open to callers without a token only if that is asked for, each time', async () => {
    const bind = 'hosts bind open.example.com --tenant landlord --agent';
    expect(await json(`${bind} echo`)).toMatchObject({ public: false });
    expect((await baton(`${bind} echo --public`)).out).toMatch(/for everybody, also without a token\.$/);
    expect(await json(`${bind} index`)).toMatchObject({ agent: 'index', public: false });
  });

  it('are refused with a remedy: what is no host, whose it is, who answers', async () => {
    expect(await refusal('hosts bind https://x.example.com --tenant landlord --agent echo')).toMatch(
      /^"https:\/\/x\.example\.com" cannot be a host: give the name alone/,
    );
    expect(await refusal('hosts bind x.example.com --tenant nobody --agent echo')).toMatch(
      /no tenant "nobody"/,
    );
    expect(await refusal('hosts bind x.example.com --tenant landlord --agent nobody')).toMatch(
      /no agent "nobody"/,
    );
    await json('hosts bind mine.example.com --tenant landlord --agent echo');
    expect(await refusal('hosts bind mine.example.com --tenant squatter --agent echo')).toMatch(
      /^"mine\.example\.com" is bound to another tenant: npx baton hosts unbind mine\.example\.com frees it/,
    );
    expect(await refusal('hosts unbind yours.example.com')).toMatch(/^"yours\.example\.com" is not bound: /);
  });
});
