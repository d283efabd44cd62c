import { ProtocolError, type Scope, TaskState } from '@baton/a2a';
import { type BulkAction, type BulkFilter, MAX_RUNNING } from '@baton/database';
import { BulkOperations, isSeenBy } from './bulk-operations.js';
import type { MatchedTasks } from './matching-tasks.js';

const ID = '0198a000-0000-7000-8000-000000000001';
const ACTOR = { kind: 'token', key: 'token:ann' } as const;
const caller = (...scopes: Scope[]) => ({
  tenantId: 't',
  principal: { kind: 'token', key: 'token:ann' } as const,
  scopes,
});

/** @param parts what each search finds */
function operationsWith(store: object, parts: MatchedTasks[] = []): BulkOperations {
  const matching = { find: () => Promise.resolve(parts.shift()) };
  return new BulkOperations(store as never, matching as never);
}

const part = (found: number, searched: number, isLast: boolean): MatchedTasks => ({
  tasks: Array.from({ length: found }, () => ({}) as never),
  searched,
  next: isLast ? null : { state: 0 },
});

describe('an operation on many tasks', () => {
  it.each<[action: BulkAction, scopes: Scope[], filter: BulkFilter, says: string]>([
    ['delete', ['agents:call', 'tasks:write'], {}, 'admin'],
    ['cancel', ['tasks:read'], {}, 'agents:call'],
    [
      'cancel',
      ['agents:call'],
      { state: TaskState.TASK_STATE_FAILED },
      'no tasks that the action "cancel" is for',
    ],
    [
      'delete',
      ['admin'],
      { state: TaskState.TASK_STATE_WORKING },
      'no tasks that the action "delete" is for',
    ],
    ['resume', ['agents:call'], { parked: false }, 'only parked tasks can be resumed'],
  ])('is refused before it begins: %s with %j of %j', async (action, scopes, filter, says) => {
    const create = jest.fn();
    const operations = operationsWith({ create }, [part(0, 0, true)]);
    await expect(operations.begin(caller(...scopes), action, filter, ACTOR)).rejects.toThrow(says);
    await expect(operations.preview(caller(...scopes), action, filter)).rejects.toThrow(says);
    expect(create).not.toHaveBeenCalled();
  });

  it('has the rights that its caller has now, and names the limit if too many run', async () => {
    const create = jest.fn().mockResolvedValueOnce({ id: ID }).mockResolvedValueOnce(undefined);
    const operations = operationsWith({ create });
    const begin = () => operations.begin(caller('agents:call'), 'cancel', { agentId: 'a' }, ACTOR);
    expect(await begin()).toEqual({ id: ID });
    const { principal, scopes } = caller('agents:call');
    expect(create).toHaveBeenCalledWith({
      tenantId: 't',
      action: 'cancel',
      filter: { agentId: 'a' },
      caller: { principal, scopes },
      actor: ACTOR,
    });
    const refusal: unknown = await begin().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ProtocolError);
    expect(refusal).toMatchObject({
      kind: 'limit-exceeded',
      message: expect.stringContaining(`${MAX_RUNNING}`),
    });
  });

  it('is shown before it begins: with few tasks, the number of all, and whether all were looked at', async () => {
    const whole = operationsWith({}, [part(15, 500, false), part(15, 500, false), part(1, 3, true)]);
    const all = await whole.preview(caller('agents:call'), 'cancel', {});
    expect([all.found, all.tasks.length, all.isWhole]).toEqual([31, 20, true]);
    const many = operationsWith({}, [part(1, 9_999, false), part(1, 1, false), part(1, 1, true)]);
    const some = await many.preview(caller('agents:call'), 'cancel', {});
    expect([some.found, some.isWhole]).toEqual([2, false]);
  });

  it('is seen by its caller, and by those who may read all agents', async () => {
    const theirs = {
      id: ID,
      tenantId: 't',
      caller: { principal: { kind: 'token', key: 'token:bob' } },
    } as never;
    expect(isSeenBy(caller('agents:call'), theirs)).toBe(false);
    expect(isSeenBy(caller('admin'), theirs)).toBe(true);
    expect(isSeenBy({ ...caller('admin'), agents: { slugs: ['a'], ids: ['a'] } }, theirs)).toBe(false);
    expect(isSeenBy({ ...caller(), principal: { kind: 'token', key: 'token:bob' } }, theirs)).toBe(true);
    const cancel = jest.fn().mockResolvedValueOnce(undefined);
    const operations = operationsWith({ find: () => Promise.resolve(theirs), cancel });
    await expect(operations.cancel(caller('agents:call'), ID, ACTOR)).rejects.toThrow('Operation not found');
    expect(cancel).not.toHaveBeenCalled();
    await expect(operations.cancel(caller('admin'), ID, ACTOR)).rejects.toThrow('The operation has ended');
  });
});
