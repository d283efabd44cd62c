import { parseGrant } from './issuers.js';

describe('a rule of --grant', () => {
  it.each([
    ['admin if groups=heads', { claim: 'groups', value: 'heads', scopes: ['admin'] }],
    [
      ' tasks:read,tasks:write  if /realm_access/roles=a b=c ',
      { claim: '/realm_access/roles', value: 'a b=c', scopes: ['tasks:read', 'tasks:write'] },
    ],
    [
      'agents:call if https://example.com/roles=x',
      { claim: 'https://example.com/roles', value: 'x', scopes: ['agents:call'] },
    ],
  ])('%s is understood', (rule, grant) => expect(parseGrant(rule)).toEqual(grant));

  it.each([
    '',
    'admin',
    'admin if groups',
    'admin if =x',
    'admin if groups=',
    'if groups=x',
    'all if groups=x',
  ])('"%s" is refused', (rule) => expect(() => parseGrant(rule)).toThrow(/^--grant: /));
});
