import type { JWTPayload } from 'jose';
import { hasValue, scopesOf, userPrincipal } from './claims.js';
import { trust } from './issuer.fixture.js';

describe('a claim', () => {
  const claims = {
    text: 'a b',
    list: ['a', 'b', 1],
    number: 7,
    yes: true,
    scope: 'agents:call tasks:read',
    'https://example.com/roles': ['staff'],
    realm_access: { roles: ['staff'], 'a/b~c': 'x' },
    nothing: null,
  };

  it.each([
    ['text', 'a b'],
    ['list', 'b'],
    ['list', '1'],
    ['number', '7'],
    ['yes', 'true'],
    ['scope', 'tasks:read'],
    ['https://example.com/roles', 'staff'],
    ['/realm_access/roles', 'staff'],
    ['/realm_access/a~1b~0c', 'x'],
  ])('%s has the value %s', (claim, value) => expect(hasValue(claims, claim, value)).toBe(true));

  it.each([
    ['text', 'a'],
    ['list', 'a,b'],
    ['scope', 'tasks'],
    ['realm_access.roles', 'staff'],
    ['/realm_access/roles/length', '1'],
    ['/text/length', '3'],
    ['constructor', 'x'],
    ['__proto__', '[object Object]'],
    ['nothing', 'null'],
    ['missing', 'undefined'],
    ['/', ''],
  ])('%s does not have the value %s', (claim, value) => expect(hasValue(claims, claim, value)).toBe(false));
});

it('claims add scopes to those of all users', () => {
  const row = trust({
    scopes: ['agents:call'],
    grants: [
      { claim: 'groups', value: 'staff', scopes: ['tasks:read', 'agents:call'] },
      { claim: 'groups', value: 'heads', scopes: ['admin'] },
    ],
  });
  expect(scopesOf(row, {})).toEqual(['agents:call']);
  expect(scopesOf(row, { groups: ['staff'] })).toEqual(['agents:call', 'tasks:read']);
  expect(scopesOf(row, { groups: ['heads', 'staff'] })).toEqual(['agents:call', 'tasks:read', 'admin']);
});

describe('the principal of a user', () => {
  const key = (row = trust(), claims: JWTPayload = { sub: 'ada', email: 'ada@example.com' }) =>
    userPrincipal(row, claims)?.key;

  it('is opaque, and stays the same', () => {
    expect(key()).toBe(key());
    expect(key()).not.toContain('ada');
    expect(key()).toMatch(/^user:[\w-]{43}$/);
  });

  it('differs by subject, issuer and claim', () => {
    const both = { sub: 'ada', email: 'ada' };
    const keys = [
      key(trust(), both),
      key(trust(), { sub: 'bob' }),
      key(trust({ issuer: 'https://other.example' }), both),
      key(trust({ subjectClaim: 'email' }), both),
    ];
    expect(new Set(keys).size).toBe(4);
  });

  it.each([{}, { sub: '' }, { sub: 7 }, { sub: ['ada'] }])('is none for %j', (claims) => {
    expect(userPrincipal(trust(), claims as JWTPayload)).toBeUndefined();
  });
});
