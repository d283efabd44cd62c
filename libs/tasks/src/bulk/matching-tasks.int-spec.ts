import { type Scope, TaskState } from '@baton/a2a';
import {
  type BulkAction,
  type BulkCursor,
  type BulkFilter,
  Database,
  RunStore,
  TaskStore,
} from '@baton/database';
import { randomUUID } from 'node:crypto';
import { userMessage } from '../../../../test/support/agents/turns.js';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { newTask } from '../turns/new-task.js';
import { MatchingTasks, type TaskMatch } from './matching-tasks.js';

const { TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED, TASK_STATE_COMPLETED, TASK_STATE_FAILED } = TaskState;
const PRINCIPAL = { kind: 'token', key: 'token:ann' } as const;
const ALL: Scope[] = ['tasks:read', 'tasks:write'];
const MOST = { found: 100, searched: 1_000 };

let testDatabase: TestDatabase;
let database: Database;
let tasks: TaskStore;
let runs: RunStore;
let matching: MatchingTasks;
let tenantId: string;
beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 4 });
  tasks = new TaskStore(database);
  runs = new RunStore(database);
  matching = new MatchingTasks(tasks, runs);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => (tenantId = randomUUID()));

interface Made {
  agentId?: string;
  owner?: string;
  version?: number;
  error?: string;
}

/** A task in this state. @returns its id */
async function taskIn(
  state: TaskState,
  { agentId = 'echo', owner, version, error = '' }: Made = {},
): Promise<string> {
  const message = userMessage('hello', { messageId: randomUUID(), contextId: '', taskId: '' });
  const task = newTask(message, {});
  const runId = randomUUID();
  await tasks.create({ tenantId, agentId, owner, runId, task, extensions: [] });
  const run = (await runs.claim(tenantId, runId, 'worker', 60_000))!;
  if (version !== undefined) await runs.noteAgentVersion(run, { version });
  if (state !== TASK_STATE_WORKING) {
    const said = userMessage(error, { messageId: randomUUID(), contextId: '', taskId: task.id });
    const status = { state, message: said, timestamp: new Date().toISOString() };
    const value = { taskId: task.id, contextId: task.contextId, status, metadata: undefined };
    const payload = { $case: 'statusUpdate', value } as const;
    const json = JSON.stringify({
      statusUpdate: { status: { state, message: { parts: [{ text: error }] } } },
    });
    await runs.append(run, { afterSequence: 2, events: [{ payload, json }], end: { state, outcome: null } });
  }
  return task.id;
}

/** Later than every task of a test. */
const inAMinute = (): Date => new Date(Date.now() + 60_000);

const matchOf = (action: BulkAction, filter: BulkFilter = {}, more: Partial<TaskMatch> = {}): TaskMatch => ({
  tenantId,
  action,
  filter,
  caller: { principal: PRINCIPAL, scopes: ALL },
  asOf: inAMinute(),
  ...more,
});

/** As if these times of the task were an hour later. */
const makeLater = (id: string, ...columns: ('created_at' | 'status_at')[]) =>
  database.systemQuery(
    {
      text: `UPDATE tasks SET ${columns.map((each) => `${each} = ${each} + interval '1 hour'`).join(', ')} WHERE id = $1`,
    },
    [id],
  );

const idsOf = async (match: TaskMatch, cursor: BulkCursor | null = null, most = MOST): Promise<string[]> =>
  (await matching.find(match, cursor, most)).tasks.map(({ task }) => task.id);

describe('the tasks of an operation', () => {
  it('are in a state for which the action is, in the order of the states, the newest of each first', async () => {
    const asking = await taskIn(TASK_STATE_INPUT_REQUIRED);
    const [older, newer] = [await taskIn(TASK_STATE_WORKING), await taskIn(TASK_STATE_WORKING)];
    const [completed, failed] = [await taskIn(TASK_STATE_COMPLETED), await taskIn(TASK_STATE_FAILED)];
    expect(await idsOf(matchOf('cancel'))).toEqual([newer, older, asking]);
    expect(await idsOf(matchOf('delete'))).toEqual([completed, failed]);
    expect(await idsOf(matchOf('continue'))).toEqual([failed]);
    expect(await idsOf(matchOf('resume'))).toEqual([]);
    expect(await idsOf(matchOf('cancel', { state: TASK_STATE_INPUT_REQUIRED }))).toEqual([asking]);
    expect(await idsOf(matchOf('cancel', {}, { tenantId: randomUUID() }))).toEqual([]);
  });

  it('match each criterion: agent, owner, error and version', async () => {
    const wanted = { agentId: 'payer', owner: 'token:bob', version: 2, error: 'The DOOR is locked' };
    const id = await taskIn(TASK_STATE_FAILED, wanted);
    await taskIn(TASK_STATE_FAILED, { agentId: 'echo', owner: 'token:eve', version: 3, error: 'no money' });
    await taskIn(TASK_STATE_FAILED);
    const filters = [{ agentId: 'payer' }, { owner: 'token:bob' }, { error: 'door IS' }, { version: 2 }];
    for (const filter of filters) expect(await idsOf(matchOf('delete', filter))).toEqual([id]);
  });

  it('are those that the caller may change', async () => {
    const own = await taskIn(TASK_STATE_WORKING, { owner: PRINCIPAL.key });
    const other = await taskIn(TASK_STATE_WORKING, { owner: 'token:bob', agentId: 'payer' });
    const caller = { principal: PRINCIPAL, scopes: ['agents:call'] as Scope[] };
    expect(await idsOf(matchOf('cancel', {}, { caller }))).toEqual([own]);
    const agents = { slugs: ['payer'], ids: ['payer'] };
    const limited = { principal: PRINCIPAL, scopes: ALL, agents };
    expect(await idsOf(matchOf('cancel', {}, { caller: limited }))).toEqual([other]);
  });

  it('are no younger than the operation, and have not ended later: it would else send its own tasks again', async () => {
    const ended = await taskIn(TASK_STATE_COMPLETED);
    const open = await taskIn(TASK_STATE_WORKING);
    const asOf = inAMinute();
    for (const state of [TASK_STATE_COMPLETED, TASK_STATE_WORKING])
      await makeLater(await taskIn(state), 'created_at', 'status_at');
    await makeLater(await taskIn(TASK_STATE_COMPLETED), 'status_at');
    expect(await idsOf(matchOf('send-again', {}, { asOf }))).toEqual([ended]);
    expect(await idsOf(matchOf('cancel', {}, { asOf }))).toEqual([open]);
  });

  it('are found in parts, each once, until there are no more', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 120; i += 1)
      ids.push(await taskIn(i % 8 === 0 ? TASK_STATE_FAILED : TASK_STATE_COMPLETED));
    const match = matchOf('delete');
    const found: string[] = [];
    const parts: number[] = [];
    let cursor: BulkCursor | null = null;
    do {
      const part = await matching.find(match, cursor, { found: 10, searched: 1_000 });
      found.push(...part.tasks.map(({ task }) => task.id));
      parts.push(part.searched);
      cursor = part.next;
    } while (cursor);
    expect(found.toSorted()).toEqual(ids.toSorted());
    expect(parts).toEqual([100, 20, 0]);
    const none = await matching.find(matchOf('delete', { error: 'x' }), null, { found: 10, searched: 50 });
    expect(none).toMatchObject({ tasks: [], searched: 100, next: { state: 0, after: expect.any(Object) } });
  });
});
