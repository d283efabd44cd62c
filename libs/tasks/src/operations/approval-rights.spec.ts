import { type Principal, type Scope, SPEC_RULES, TaskState, dataPart, tokenPrincipal } from '@baton/a2a';
import { claimedRun, message } from '../runs/claimed-run.fixture.js';
import { approverFor } from './approval-rights.js';

const MINE = tokenPrincipal('mine');
const GUEST: Principal = { kind: 'guest', key: 'guest:open.example:mine' };
const ALL: readonly Scope[] = ['agents:call', 'tasks:read', 'tasks:write', 'tasks:approve'];

const CALL = { callId: 'call-1-1', tool: 'pay', description: '', input: {} };
const asking = (owner: string | null, ...terms: object[]) => {
  const parts = terms.map((each) => dataPart({ approval: { ...CALL, ...each } }));
  const state = TaskState.TASK_STATE_INPUT_REQUIRED;
  const status = { state, message: { ...message(''), parts }, timestamp: undefined };
  return { task: { ...claimedRun().snapshot.task, status }, owner };
};
const answer = (
  principal: Principal,
  scopes: readonly Scope[],
  task: Parameters<typeof approverFor>[1],
): string => {
  try {
    return approverFor({ principal, scopes }, task)?.principal ?? 'no approval';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('who answers a task that waits for approval', () => {
  it('is a token with tasks:approve, its owner or another', () => {
    expect(answer(MINE, ALL, asking(MINE.key, {}))).toBe(MINE.key);
    expect(answer(MINE, ['admin'], asking('token:other', {}))).toBe(MINE.key);
    expect(answer(MINE, ['agents:call', 'tasks:write'], asking(MINE.key, {}))).toMatch(
      /lacks the scope tasks:approve/,
    );
  });

  it('does not exist where messages may come from a model, which could approve its own calls', () => {
    const rules = { ...SPEC_RULES, approvals: 'refused' as const };
    const caller = { principal: MINE, scopes: ALL, rules };
    expect(() => approverFor(caller, asking(MINE.key, {}))).toThrow(/a person must give it/);
    expect(approverFor(caller, asking(MINE.key))).toBeUndefined();
  });

  it('is any caller where the task asks for something else', () => {
    expect(answer(MINE, ['agents:call'], asking(MINE.key))).toBe('no approval');
    expect(answer(GUEST, ['agents:call'], asking(GUEST.key))).toBe('no approval');
  });

  it('is a guest only if the agents of all calls allow it', () => {
    expect(answer(GUEST, ALL, asking(GUEST.key, {}))).toMatch(/guests may not approve/);
    expect(answer(GUEST, [], asking(GUEST.key, { guests: true }, {}))).toMatch(/guests may not approve/);
    expect(answer(GUEST, [], asking(GUEST.key, { guests: true }))).toBe(GUEST.key);
  });

  it('is not its owner where an agent asks for another person, nor any caller where the owner is unknown', () => {
    const other = /a principal other than its owner/;
    expect(answer(MINE, ALL, asking(MINE.key, {}, { by: 'other' }))).toMatch(other);
    expect(answer(MINE, ALL, asking(null, { by: 'other' }))).toMatch(other);
    expect(answer(MINE, ALL, asking('token:other', { by: 'other' }))).toBe(MINE.key);
    expect(answer(GUEST, [], asking(GUEST.key, { by: 'other', guests: true }))).toMatch(other);
  });

  it('needs the right also where the question is too large to be read', () => {
    const cut = { ...asking(GUEST.key), truncation: { statusMessage: true as const } };
    expect(answer(GUEST, [], cut)).toMatch(/guests may not approve/);
    expect(answer(MINE, ['agents:call'], cut)).toMatch(/tasks:approve/);
  });
});
