import { agentMessage, dataPart, TaskState } from '@baton/a2a';
import { type FakeApi, startFakeApi } from '../../../../../test/support/api/fake-api.js';
import { sampleTask, taskItem } from '../../../../../test/support/api/samples.js';

const ID = '0198a000-0000-7000-8000-000000000001';
const CHILD = '0198a000-0000-7000-8000-000000000002';
const UNKNOWN = '0198a000-0000-7000-8000-00000000000f';
/** What an agent has written looks like a member of the answer. */
const METADATA = { task_id: 'mine', tasks: [{ task_id: 'mine' }] };
let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
  api.agentOfTask[ID] = 'echo';
  const task = async () => ({ ...sampleTask({ id: ID }), metadata: METADATA });
  api.operations.getTask = task;
  api.operations.cancelTask = task;
  api.operations.subscribeToTask = async function* () {
    yield [taskItem()];
  };
  api.listing.list = async () => ({
    tasks: [{ task: sampleTask({ id: ID }), sequence: 3, agentId: 'echo', owner: null, outcome: null }],
    more: false,
  });
  api.stored.relations = async () => ({
    owner: null,
    parentTaskId: null,
    childTaskIds: [CHILD],
    agentVersion: null,
    events: 3,
    createdAt: new Date('2026-01-31T11:59:00.000Z'),
    wakesAt: null,
    reminders: [],
  });
  api.stored.descendants = async () => [
    {
      taskId: CHILD,
      parentTaskId: ID,
      agentId: 'echo',
      state: TaskState.TASK_STATE_COMPLETED,
      owner: null,
      createdAt: new Date('2026-01-31T11:59:00.000Z'),
      statusAt: new Date('2026-01-31T12:00:00.000Z'),
    },
  ];
});
afterAll(() => api.close());

const ask = async (path: string, method = 'GET') => {
  const response = await fetch(api.url + path, { method, headers: { authorization: 'Bearer caller' } });
  return { status: response.status, text: await response.text() };
};
const json = async (path: string, method?: string) =>
  JSON.parse((await ask(path, method)).text) as Record<string, unknown>;

it('A-44 lists as `requests` what `/v1/tasks` lists as `tasks`', async () => {
  const { tasks, ...rest } = await json('/v1/tasks');
  const [{ task_id: id, ...task }] = tasks as [{ task_id: string }];
  expect(id).toBe(ID);
  expect(await json('/v1/requests')).toEqual({ ...rest, requests: [{ ...task, request_id: ID }] });
});

it('A-44 names the task and its descendants `request_id`, and leaves what the agent wrote', async () => {
  const { task_id: id, descendants, ...rest } = await json(`/v1/tasks/${ID}`);
  expect(id).toBe(ID);
  const [{ task_id: child, ...descendant }] = descendants as [{ task_id: string }];
  expect(child).toBe(CHILD);
  expect(rest.task).toMatchObject({ metadata: METADATA });
  expect(await json(`/v1/requests/${ID}`)).toEqual({
    ...rest,
    request_id: ID,
    descendants: [{ ...descendant, request_id: CHILD }],
  });
});

it('names the tasks above one that waits `request_id`, and leaves what the agent asks', async () => {
  const { tasks: stored } = await api.listing.list({} as never, { limit: 1 });
  const message = agentMessage({ id: ID, contextId: 'c' }, 'm', [dataPart(METADATA)]);
  const status = { state: TaskState.TASK_STATE_INPUT_REQUIRED, message, timestamp: undefined };
  const task = { ...sampleTask({ id: ID }), status };
  const above = [{ taskId: CHILD, agentId: 'lead' }];
  api.listing.answerable = async () => ({ tasks: [{ ...stored[0]!, task, above }] });
  expect(await json('/v1/requests?answerable=true')).toMatchObject({
    requests: [
      {
        request_id: ID,
        ancestors: [{ request_id: CHILD, agent_id: 'lead' }],
        question: [{ data: METADATA }],
      },
    ],
  });
});

it('A-39 cancels with the same answers', async () => {
  expect(await json(`/v1/requests/${ID}/cancel`, 'POST')).toEqual({ request_id: ID, cancelled: true });
  expect(await ask(`/v1/requests/${UNKNOWN}/cancel`, 'POST')).toEqual({
    status: 404,
    text: JSON.stringify({
      request_id: UNKNOWN,
      cancelled: false,
      reason: `Task not found: ${UNKNOWN}`,
    }),
  });
});

it('A-44 streams the same events', async () => {
  const path = `/${ID}/events?since_seq=0`;
  const { status, text } = await ask(`/v1/requests${path}`);
  expect([status, text]).toEqual([200, (await ask(`/v1/tasks${path}`)).text]);
  expect(text).toContain('id: 1\n');
});
