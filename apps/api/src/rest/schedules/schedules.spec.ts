import { ProtocolError, TaskState } from '@baton/a2a';
import type { Schedule, ScheduleSpec } from '@baton/database';
import { type FakeApi, startFakeApi } from '../../../../../test/support/api/fake-api.js';

const ID = '0198a000-0000-7000-8000-000000000001';
let api: FakeApi;
let said: unknown[];

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(() => api.close());

const stored = (spec: Partial<ScheduleSpec>): Schedule =>
  ({
    tenantId: 'tenant-1',
    id: ID,
    fired: 2,
    nextAt: new Date(0),
    isWaiting: false,
    pendingAt: null,
    version: 3,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    lastTaskId: 'task',
    lastTaskState: TaskState.TASK_STATE_COMPLETED,
    recentTasks: [
      { taskId: 'task', state: TaskState.TASK_STATE_COMPLETED, createdAt: new Date(1) },
      { taskId: 'before', state: TaskState.TASK_STATE_FAILED, createdAt: new Date(0) },
    ],
    last: { dueAt: new Date(0), at: new Date(1), outcome: 'skipped', reason: 'why' },
    ...spec,
  }) as Schedule;

beforeEach(() => {
  said = [];
  api.schedules.create = async ({ tenantId }, spec) => {
    said.push(tenantId, spec);
    return stored(spec);
  };
  api.schedules.change = async ({ tenantId }, id, patch) => {
    said.push(tenantId, id, patch);
    return stored(patch);
  };
  api.schedules.find = async (_viewer, id) => {
    throw new ProtocolError('not-found', `Schedule not found: ${id}`);
  };
});

async function ask(method: string, path: string, body?: unknown, token = 'admin') {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(`${api.url}/v1/schedules${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, json: (text && JSON.parse(text)) as Record<string, any> }; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire
}
const fieldsOf = async (method: string, path: string, body: unknown) => {
  const { status, json } = await ask(method, path, body);
  const { fields } = json.error as { fields?: { field: string }[] };
  return [status, fields?.map(({ field }) => field)];
};

const LEAST = { name: 'report', agent: 'echo', cron: '0 8 * * *', text: 'go' };

it('a schedule sends messages for its author, so the token needs agents:call as well', async () => {
  api.schedules.remove = async () => undefined;
  const writes = [
    ['POST', '', LEAST],
    ['PATCH', `/${ID}`, { text: 'other' }],
    ['PATCH', `/${ID}`, { paused: false }],
    ['PATCH', `/${ID}`, { paused: true, text: 'other' }],
    ['POST', `/${ID}/run`, undefined],
  ] as const;
  for (const [method, path, body] of writes) {
    const { status, json } = await ask(method, path, body, 'scheduler');
    expect([status, json.error?.message]).toEqual([403, 'the token lacks the scope agents:call']);
  }
  expect(said).toEqual([]);
  api.schedules.change = async (_viewer, id) => {
    throw new ProtocolError('not-found', `Schedule not found: ${id}`);
  };
  expect((await ask('PATCH', `/${ID}`, { paused: true }, 'scheduler')).status).toBe(404);
  expect((await ask('DELETE', `/${ID}`, undefined, 'scheduler')).status).toBe(204);
  expect((await ask('POST', '', LEAST, 'caller')).status).toBe(403);
});

describe('a schedule over HTTP', () => {
  it('is created from the required fields, with defaults for the others', async () => {
    const { status, json } = await ask('POST', '', LEAST);
    expect(status).toBe(201);
    expect(said).toMatchObject([
      'tenant-1',
      {
        name: 'report',
        agent: 'echo',
        cron: '0 8 * * *',
        at: null,
        timeZone: 'UTC',
        overlap: 'skip',
        missed: 'fire-once',
        context: 'new',
        startsAt: null,
        endsAt: null,
        maxCount: null,
        paused: false,
        message: { parts: [{ content: { $case: 'text', value: 'go' } }] },
      },
    ]);
    expect(json).toMatchObject({
      id: ID,
      name: 'report',
      cron: '0 8 * * *',
      time_zone: 'UTC',
      next_at: '1970-01-01T00:00:00.000Z',
      message: { parts: [{ text: 'go' }] },
      last_outcome: { outcome: 'skipped', reason: 'why' },
      last_task: { request_id: 'task', state: 'completed' },
      recent_tasks: [
        { task_id: 'task', state: 'completed', created_at: '1970-01-01T00:00:00.001Z' },
        { task_id: 'before', state: 'failed', created_at: '1970-01-01T00:00:00.000Z' },
      ],
    });
    expect(JSON.stringify(json)).not.toContain('tenant');
  });

  it('takes a whole message, and times with an offset', async () => {
    const message = { parts: [{ data: { a: [1] } }, { text: 'and' }], metadata: { k: 1 } };
    const times = { at: '2030-01-01T09:00:00+01:00', ends_at: '2031-01-01T00:00:00Z' };
    await ask('POST', '', { name: 'once', agent: 'echo', message, ...times });
    expect(said[1]).toMatchObject({
      at: new Date('2030-01-01T08:00:00Z'),
      endsAt: new Date('2031-01-01T00:00:00Z'),
      cron: null,
      message: { parts: [{}, {}], metadata: { k: 1 }, messageId: '', contextId: '' },
    });
  });

  it('is changed in the given fields alone', async () => {
    await ask('PATCH', '/report', { paused: true, max_count: null, time_zone: 'Asia/Tokyo' });
    expect(said).toEqual(['tenant-1', 'report', { paused: true, maxCount: null, timeZone: 'Asia/Tokyo' }]);
  });

  it.each([
    ['name', { name: 'Not Good' }],
    ['name', { name: ID }],
    ['agent', { agent: '' }],
    ['at', { at: 'tomorrow' }],
    ['at', { at: '2030-01-01T09:00:00' }],
    ['overlap', { overlap: 'maybe' }],
    ['missed', { missed: 'never' }],
    ['context', { context: 'old' }],
    ['max_count', { max_count: 0 }],
    ['paused', { paused: 'yes' }],
    ['every', { every: '5m' }],
    ['text', { message: { parts: [{ text: 'a' }] } }],
    ['text', { text: '' }],
    ['text', { text: 'x'.repeat(65_536) }],
    ['text', { text: undefined }],
    ['message.parts', { text: undefined, message: {} }],
    ['message.parts[0].content', { text: undefined, message: { parts: [{}] } }],
    ['message.taskId', { text: undefined, message: { taskId: 'a', parts: [{ text: 'a' }] } }],
  ])('is refused by its field %s (%#)', async (field, wrong) => {
    expect(await fieldsOf('POST', '', { ...LEAST, ...wrong })).toEqual([400, [field]]);
  });

  it('that is not there is not found', async () => {
    expect(await ask('GET', '/gone')).toMatchObject({
      status: 404,
      json: { error: { status: 'NOT_FOUND' } },
    });
  });

  it.each([
    ['GET', '', 'nobody', 403],
    ['GET', '/a', 'caller', 403],
    ['GET', '/a', 'reader', 404],
    ['POST', '', 'caller', 403],
    ['PATCH', '/a', 'reader', 403],
    ['DELETE', '/a', 'reader', 403],
    ['POST', '/a/run', 'caller', 403],
    ['PUT', '/a', 'admin', 405],
  ])('%s %s by %s is answered with %s', async (method, path, token, status) => {
    expect((await ask(method, path, undefined, token)).status).toBe(status);
  });
});
