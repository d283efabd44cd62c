import {
  type Principal,
  type Scope,
  assertWritable,
  canSee,
  tokenPrincipal,
  visibleTasks,
  writableTasks,
} from './rights.js';

const MINE = tokenPrincipal('mine');
const GUEST: Principal = { kind: 'guest', key: 'guest:open.example:mine' };
const OTHERS = tokenPrincipal('other').key;

type Reached = 'reads and writes' | 'reads' | 'nothing';

function reachOf(principal: Principal, scopes: readonly Scope[], owner: string | null): Reached {
  const caller = { principal, scopes };
  if (!canSee(caller, { owner, agentId: 'echo' })) return 'nothing';
  try {
    assertWritable(caller, owner);
    return 'reads and writes';
  } catch {
    return 'reads';
  }
}

describe('what a caller reaches', () => {
  it.each<[Scope[], own: Reached, unowned: Reached, others: Reached]>([
    [['agents:call'], 'reads and writes', 'reads and writes', 'nothing'],
    [['agents:call', 'tasks:write'], 'reads and writes', 'reads and writes', 'nothing'],
    [['agents:call', 'tasks:approve'], 'reads and writes', 'reads and writes', 'nothing'],
    [['agents:call', 'tasks:read'], 'reads and writes', 'reads and writes', 'reads'],
    [
      ['agents:call', 'tasks:read', 'tasks:write'],
      'reads and writes',
      'reads and writes',
      'reads and writes',
    ],
    [['admin'], 'reads and writes', 'reads and writes', 'reads and writes'],
  ])(
    'of its own tasks, of those without an owner, and of others, with %j',
    (scopes, own, unowned, others) => {
      expect(reachOf(MINE, scopes, MINE.key)).toBe(own);
      expect(reachOf(MINE, scopes, null)).toBe(unowned);
      expect(reachOf(MINE, scopes, OTHERS)).toBe(others);
    },
  );

  it.each<[Scope[]]>([[['agents:call']], [['agents:call', 'tasks:read', 'tasks:write']], [['admin']]])(
    'as a guest is what it has made, whatever its scopes: %j',
    (scopes) => {
      expect(reachOf(GUEST, scopes, GUEST.key)).toBe('reads and writes');
      expect(reachOf(GUEST, scopes, null)).toBe('nothing');
      expect(reachOf(GUEST, scopes, OTHERS)).toBe('nothing');
      expect(reachOf(GUEST, scopes, 'guest:open.example:other')).toBe('nothing');
      const own = { owner: GUEST.key, unowned: false };
      expect([
        visibleTasks({ principal: GUEST, scopes }),
        writableTasks({ principal: GUEST, scopes }),
      ]).toEqual([own, own]);
    },
  );

  it.each<[agentId: string, Scope[], owner: string, seen: boolean]>([
    ['id-of-a', ['agents:call'], MINE.key, true],
    ['id-of-b', ['agents:call'], MINE.key, false],
    ['a', ['admin'], MINE.key, false],
    ['id-of-a', ['admin'], OTHERS, true],
    ['id-of-b', ['admin'], OTHERS, false],
  ])('with a list of agents are tasks of these alone: of %s with %j', (agentId, scopes, owner, seen) => {
    const caller = { principal: MINE, scopes, agents: { slugs: ['a'], ids: ['id-of-a'] } };
    expect(canSee(caller, { owner, agentId })).toBe(seen);
    expect(canSee({ ...caller, agents: { slugs: ['a'], ids: [] } }, { owner, agentId })).toBe(false);
  });

  it('names the scope that is missing', () => {
    const reader = { principal: MINE, scopes: ['agents:call', 'tasks:read'] as const };
    expect(() => assertWritable(reader, OTHERS)).toThrow(/lacks the scope tasks:write/);
  });
});
