import { dataPart, type Part, type Scope, TaskState, textPart, tokenPrincipal } from '@baton/a2a';
import type { TaskFilter, TaskStore, TaskTreeStore, WaitingTask } from '@baton/database';
import { claimedRun, message } from '../runs/claimed-run.fixture.js';
import { TaskListing } from './task-listing.js';

const MINE = tokenPrincipal('mine');
const CALL = { callId: 'call-1', tool: 'pay', description: '', input: {} };

const status = (parts: Part[]) => ({
  state: TaskState.TASK_STATE_INPUT_REQUIRED,
  message: { ...message(''), parts },
  timestamp: '2026-01-31T12:00:00.000Z',
});
const waiting = (id: string, parts: Part[], parent?: Part[]): WaitingTask => ({
  task: { ...claimedRun().snapshot.task, id, status: status(parts) },
  sequence: 3,
  agentId: 'echo',
  owner: MINE.key,
  outcome: null,
  ...(parent && { parent: { taskId: 'parent', status: status(parent) } }),
});
const approval = (callId: string): Part => dataPart({ approval: { ...CALL, callId } });

/** What a caller may answer of these, and how far each page went. */
async function answerable(all: readonly WaitingTask[], scopes: Scope[], limit: number) {
  const asked: Pick<TaskFilter, 'own' | 'pageSize' | 'after'>[] = [];
  const tasks = {
    listWaiting: async (filter: TaskFilter) => {
      asked.push(filter);
      const start = all.findIndex(({ task }) => task.id === filter.after?.taskId) + 1;
      const page = all.slice(start, start + filter.pageSize);
      return { tasks: page, more: start + page.length < all.length };
    },
  } as unknown as TaskStore;
  const tree = {
    ancestors: async () => ['child', 'parent', 'root'].map((taskId) => ({ taskId, agentId: `${taskId}'s` })),
  } as unknown as TaskTreeStore;
  const listing = new TaskListing(tasks, tree);
  const found = await listing.answerable({ tenantId: 'tenant', principal: MINE, scopes }, { limit });
  return { ...found, asked };
}
const idsOf = ({ tasks }: { tasks: readonly { task: { id: string } }[] }) => tasks.map(({ task }) => task.id);

describe('what a caller may answer', () => {
  it('is found behind what others must answer, as far as a call looks', async () => {
    const theirs = Array.from({ length: 7 }, (_, i) => waiting(`approval-${i}`, [approval('call-1')]));
    const all = [...theirs, waiting('question', [textPart('Which?')])];
    const found = await answerable(all, ['agents:call'], 2);
    expect([idsOf(found), found.next, found.asked.length]).toEqual([['question'], undefined, 4]);
    const many = [...theirs, ...theirs, ...all].map((each, i) => ({
      ...each,
      task: { ...each.task, id: `${i}` },
    }));
    const cut = await answerable(many, ['agents:call'], 2);
    expect([idsOf(cut), cut.next?.taskId, cut.asked.length]).toEqual([[], '9', 5]);
    expect(idsOf(await answerable(all, ['agents:call', 'tasks:approve'], 2))).toEqual([
      'approval-0',
      'approval-1',
    ]);
  });

  it('is of its own tasks without the scopes to write to all', async () => {
    const own = { owner: MINE.key, unowned: true };
    for (const scopes of [['agents:call'], ['tasks:read'], ['tasks:write']] as Scope[][])
      expect((await answerable([], scopes, 1)).asked).toMatchObject([{ own }]);
    expect((await answerable([], ['tasks:read', 'tasks:write'], 1)).asked[0]!.own).toBeUndefined();
  });

  it('is a call of a child where its parent does not ask for it, with the tasks above', async () => {
    const found = await answerable(
      [
        waiting('passed-on', [approval('call-1')], [approval('call-9/call-1')]),
        waiting('kept', [approval('call-1')], [textPart('What now?')]),
        waiting('of-another', [approval('call-1')], [approval('call-9/call-2')]),
        waiting('question', [textPart('approval?')], [textPart('What now?')]),
      ],
      ['admin'],
      9,
    );
    expect(idsOf(found)).toEqual(['kept', 'of-another']);
    expect(found.tasks[0]!.above.map(({ taskId }) => taskId)).toEqual(['parent', 'root']);
  });
});
