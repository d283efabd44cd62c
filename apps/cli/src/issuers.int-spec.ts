import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { baton, database, json, listen, refusal } from './operator.fixture.js';

const UNSEEN = '--audience baton --no-check';

describe('issuers', () => {
  beforeAll(async () => {
    await json('tenants create landlord');
    await json('tenants create squatter');
  });

  it('are added, listed and removed; every process is told', async () => {
    expect((await baton('issuers list')).err).toMatch(/^No issuers are trusted yet: npx baton issuers add /);
    const received = await listen();
    const added = await json<{ id: string; tenantId: string }>(
      `issuers add https://id.example.com --tenant landlord ${UNSEEN} --claim org=o1 --subject oid --scopes agents:call,tasks:read --agents echo,desk --requests-per-second 7`,
    );
    expect(added).toEqual({
      id: added.id,
      tenantId: added.tenantId,
      tenant: 'landlord',
      issuer: 'https://id.example.com',
      audience: 'baton',
      selector: { claim: 'org', value: 'o1' },
      jwksUrl: null,
      subjectClaim: 'oid',
      scopes: ['agents:call', 'tasks:read'],
      grants: [],
      agents: ['echo', 'desk'],
      requestsPerSecond: 7,
      createdAt: expect.any(String) as string,
    });
    expect(await json('issuers list')).toEqual([added]);
    expect(await json('issuers list --tenant squatter')).toEqual([]);
    expect((await baton('issuers list --tenant landlord')).out).toMatch(
      /\nhttps:\/\/id\.example\.com +baton \(org=o1\) +landlord +agents:call,tasks:read /,
    );
    expect(await refusal(`issuers remove ${added.id} --tenant squatter`)).toMatch(/no issuer of that id/);
    expect(await json(`issuers remove ${added.id} --tenant landlord`)).toMatchObject({ id: added.id });
    expect(await json('issuers list')).toEqual([]);
    const { tenantId } = added;
    const told = { type: 'issuers-changed', tenantId, issuer: 'https://id.example.com' };
    expect(await received(2)).toEqual([told, told]);
  });

  it('are refused with a remedy if a token would select two tenants', async () => {
    const add = (tenant: string, more: string, issuer = 'https://shared.example.com') =>
      `issuers add ${issuer} --tenant ${tenant} ${UNSEEN}${more}`;
    const { id } = await json<{ id: string }>(add('landlord', ''));
    expect(await refusal(add('squatter', ''))).toBe(
      'Tenant landlord trusts this issuer and audience already, and a token must select one tenant: use another ' +
        `--audience, give each entry another value of the same --claim, or npx baton issuers remove ${id} --tenant landlord removes it.`,
    );
    expect(await refusal(add('squatter', ' --audience other --jwks-url https://x.example.com/keys'))).toMatch(
      /trusts this issuer without --jwks-url: give the same/,
    );
    await json(add('landlord', ' --claim org=o1', 'https://orgs.example.com'));
    expect(await refusal(add('squatter', ' --claim team=t1', 'https://orgs.example.com'))).toMatch(
      /with the same --claim org=<value>/,
    );
    await json(add('squatter', ' --claim org=o2', 'https://orgs.example.com'));
  });

  it.each([
    ['id.example.com', '', /^Issuer: "id\.example\.com" is not a URL/],
    ['http://id.example.com', '', /is not encrypted/],
    ['https://me:secret@id.example.com', '', /leave out user name/],
    ['https://id.example.com/?x=1', '', /leave out/],
    ['https://id.example.com', ' --scopes everything', /no scope "everything"/],
    ['https://id.example.com', ' --claim org', /^--claim: "org" is not a claim/],
    ['https://id.example.com', ' --agents echo,De/sk', /^--agents: "De\/sk" is not the slug/],
    ['https://id.example.com', ' --requests-per-second 0', /^--requests-per-second: "0" is not a number/],
    ['https://id.example.com', ' --grant admin', /^--grant: "admin" is not a rule/],
    ['https://id.example.com', ' --jwks-url http://x.example.com', /^--jwks-url: .* not encrypted/],
  ])('are refused for %s%s', async (url, more, reason) => {
    expect(await refusal(`issuers add ${url} --tenant landlord ${UNSEEN}${more}`)).toMatch(reason);
  });

  it('are refused for a tenant that does not exist', async () => {
    expect(await refusal(`issuers add https://id.example.com --tenant nobody ${UNSEEN}`)).toMatch(
      /no tenant "nobody"/,
    );
  });

  describe('whose keys are read first', () => {
    let server: Server;
    let url: string;
    let keys: object[];

    beforeAll(async () => {
      server = createServer((request, response) => {
        const document = { issuer: url, jwks_uri: `${url}/jwks` };
        response.end(JSON.stringify(request.url === '/jwks' ? { keys } : document));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    });
    afterAll(() => new Promise((resolve) => server.close(resolve)));

    const add = (issuer: string) => `issuers add ${issuer} --tenant landlord --audience baton --allow-http`;
    const allowed = () => ({ DATABASE_URL: database.url, OUTBOUND_ALLOW: '127.0.0.1' });

    it('are added if they have some', async () => {
      keys = [];
      expect(await refusal(add(url), allowed())).toMatch(/cannot be read: it has no keys\. .*--no-check\.$/);
      keys = [{ kty: 'EC', kid: 'k1' }];
      expect(await refusal(add(`${url}/`), allowed())).toMatch(
        /is about the issuer "http:.*": use exactly this name/,
      );
      expect((await baton(add(url), allowed())).out).toMatch(
        /^Users of http:.* may call tenant landlord\. Id: /,
      );
    });

    it('are not asked for where the tenant may not call', async () => {
      await baton('tenants create fenced');
      await baton('tenants egress fenced --deny id.example.com --allow *.example.com 127.0.0.0/8');
      const to = (issuer: string) => add(issuer).replace('landlord', 'fenced');
      expect(await refusal(`${to('https://id.example.com')} --no-check`)).toMatch(
        /^Issuer: "id\.example\.com" is in the list .*\(egress_deny\).*npx baton tenants egress fenced shows it\.$/,
      );
      const elsewhere = `${to('https://a.example.com')} --jwks-url https://192.0.2.1/jwks --no-check`;
      expect(await refusal(elsewhere)).toMatch(/^--jwks-url: "192\.0\.2\.1" is not in the list/);
      await baton('tenants egress fenced --deny 127.0.0.1');
      expect(await refusal(to(url), allowed())).toMatch(/^Issuer: "127\.0\.0\.1" is in the list/);
    });

    it('are not asked for at private addresses that the operator does not allow', async () => {
      expect(await refusal(add('http://127.0.0.1:8081'))).toMatch(/not at a public address.*OUTBOUND_ALLOW/);
    });
  });
});
