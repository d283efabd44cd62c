import {
  agentMessage,
  Artifact,
  type CallContext,
  dataPart,
  MAX_CONTEXT_ID_LENGTH,
  type Message,
  ProtocolError,
  Role,
  type SendMessageRequest,
  type StreamItem,
  TaskState,
  textPart,
  TRUNCATED,
} from '@baton/a2a';
import type { StoredTask } from '@baton/database';
import { type FakeApi, startFakeApi } from '../../../../../test/support/api/fake-api.js';
import { sampleTask, statusItem, taskItem } from '../../../../../test/support/api/samples.js';

const ID = '0198a000-0000-7000-8000-000000000001';
const UNKNOWN = '0198a000-0000-7000-8000-00000000000f';
let api: FakeApi;
let calls: CallContext[];

beforeAll(async () => {
  api = await startFakeApi({
    MODEL_PRICES: JSON.stringify({ 'o/m': { input: 2, output: 10, cached: 1 } }),
    MODEL_PRICES_CURRENCY: 'EUR',
  });
  api.agentOfTask[ID] = 'echo';
});
afterAll(() => api.close());

beforeEach(() => {
  calls = [];
  const task = async (call: CallContext, { id }: { id: string }) => {
    calls.push(call);
    return sampleTask({ id });
  };
  api.operations.getTask = task;
  api.operations.cancelTask = task;
  api.operations.subscribeToTask = async function* (call) {
    calls.push(call);
    const log = [
      taskItem(),
      statusItem(2, TaskState.TASK_STATE_WORKING),
      statusItem(3, TaskState.TASK_STATE_COMPLETED),
    ];
    yield log.filter(({ sequence }) => sequence > (call.lastEventId ?? 0));
  };
});

const ask = (path: string, { method = 'GET', token = 'caller', headers = {} } = {}) =>
  fetch(`${api.url}/v1/tasks${path}`, {
    method,
    headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers },
  });
const outcome = async (response: Response) => [response.status, await response.json()];

describe('the tasks of a tenant', () => {
  const stored = (id: string): StoredTask => ({
    task: sampleTask({ id }),
    sequence: 3,
    agentId: 'echo',
    owner: null,
    outcome: null,
  });

  it('are listed page by page', async () => {
    const pages: unknown[] = [];
    api.listing.list = async ({ tenantId }, page) => {
      pages.push([tenantId, page]);
      const task = { ...stored(ID).task, metadata: { 'baton.usage': { inputTokens: 7, outputTokens: 2 } } };
      const createdAt = new Date('2026-01-31T11:59:00.000Z');
      return { tasks: [{ ...stored(ID), task, owner: 'token:1', createdAt }], more: pages.length === 1 };
    };
    const first = (await (await ask('?limit=1')).json()) as { tasks: unknown; next_cursor: string };
    expect(first.tasks).toEqual([
      {
        task_id: ID,
        agent_id: 'echo',
        context_id: 'context-1',
        state: 'completed',
        updated_at: '2026-01-31T12:00:00.000Z',
        created_at: '2026-01-31T11:59:00.000Z',
        owner: 'token:1',
        usage: { input_tokens: 7, output_tokens: 2 },
      },
    ]);
    const [, last] = await outcome(await ask(`?cursor=${first.next_cursor}`));
    expect(last).toMatchObject({ next_cursor: null });
    const after = { statusAt: new Date('2026-01-31T12:00:00.000Z'), taskId: ID };
    expect(pages).toEqual([
      ['tenant-1', { limit: 1, after: undefined }],
      ['tenant-1', { limit: 50, after }],
    ]);
  });

  it('are listed by state, agent, context, owner and time', async () => {
    const filters: unknown[] = [];
    api.listing.list = async (_caller, _page, filter) => {
      filters.push(filter);
      return { tasks: [], more: false };
    };
    const since = '2026-01-31T12:00:00.000Z';
    const until = '2026-01-31T13:00:00.000Z';
    for (const query of [
      '',
      `?state=input-required&agent=echo&context_id=c-1&owner=token:1&since=${since}&until=${until}`,
      '?state=',
    ]) {
      expect((await ask(query)).status).toBe(200);
    }
    const state = TaskState.TASK_STATE_INPUT_REQUIRED;
    expect(filters).toEqual([
      {},
      {
        state,
        agentId: 'echo',
        contextId: 'c-1',
        owner: 'token:1',
        since: new Date(since),
        until: new Date(until),
      },
      {},
    ]);
    expect(await outcome(await ask(`?since=${since}&until=${since}`))).toMatchObject([
      400,
      { error: { message: expect.stringContaining('until') as string } },
    ]);
    expect(await outcome(await ask('?agent=nobody'))).toMatchObject([
      404,
      { error: { status: 'AGENT_NOT_FOUND' } },
    ]);
  });

  it('are searched for a text, up to the position in the answer', async () => {
    const asked: unknown[] = [];
    const next = { statusAt: new Date('2026-01-31T12:00:00.000Z'), taskId: ID };
    api.listing.search = async (_caller, page, text, filter) => {
      asked.push([page, text, filter]);
      const hit = { place: 'answer', text: 'all of it, 100 % sure' } as const;
      return { tasks: [{ ...stored(ID), hit }], searched: 10_000, ...(asked.length === 1 && { next }) };
    };
    const first = (await (await ask('?q=%20100%20%25&agent=echo&limit=5')).json()) as { next_cursor: string };
    const hit = { in: 'answer', text: 'all of it, 100 % sure' };
    expect(first).toMatchObject({ tasks: [{ task_id: ID, hit }], searched: 10_000 });
    const last = await (await ask(`?q=x&cursor=${first.next_cursor}`)).json();
    expect(last).toMatchObject({ next_cursor: null });
    expect(asked).toEqual([
      [{ limit: 5, after: undefined }, '100 %', { agentId: 'echo' }],
      [{ limit: 50, after: next }, 'x', {}],
    ]);
  });

  it('say which calls wait for a person, and what a tool itself asks', async () => {
    const call = { callId: 'call-1', tool: 'issues_close', description: 'Closes it.', input: { id: 7 } };
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
    const questions = [
      undefined,
      { requestedSchema },
      { url: 'https://pay.example/7' },
      // It asks for what no browser should open, so it counts as a call.
      { url: 'javascript:alert(1)' },
    ];
    const parts = questions.map((question) => dataPart({ approval: { ...call, question } }));
    const message = { ...agentMessage({ id: ID, contextId: 'c' }, 'm', parts) };
    const status = {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message,
      timestamp: '2026-01-31T12:00:00.000Z',
    };
    api.listing.list = async () => ({
      tasks: [{ ...stored(ID), task: sampleTask({ id: ID, status }) }],
      more: false,
    });
    const [, { tasks }] = (await outcome(await ask(''))) as [number, { tasks: object[] }];
    const approval = { call_id: 'call-1', tool: 'issues_close', description: 'Closes it.', input: { id: 7 } };
    expect(tasks).toEqual([
      expect.objectContaining({
        state: 'input-required',
        approvals: [
          approval,
          { ...approval, question: { requested_schema: requestedSchema } },
          { ...approval, question: { url: 'https://pay.example/7' } },
          approval,
        ],
      }),
    ]);
  });

  it('are counted by state with the other filters', async () => {
    const counted: unknown[] = [];
    api.listing.list = async () => ({ tasks: [], more: false });
    api.listing.counts = async ({ tenantId }, filter) => {
      counted.push([tenantId, filter]);
      return new Map([[TaskState.TASK_STATE_FAILED, 1_000]]);
    };
    expect(await outcome(await ask('?counts=true&agent=echo'))).toMatchObject([
      200,
      { counts: [{ state: 'failed', tasks: 1_000 }] },
    ]);
    expect(counted).toEqual([['tenant-1', { agentId: 'echo' }]]);
    expect(await (await ask('')).json()).not.toHaveProperty('counts');
  });

  it.each([
    ['The desk is closed. It opens at 8.', 'The desk is closed.'],
    ['v1.2 is too old!\nat line 1', 'v1.2 is too old!'],
    ['no end\nof it', 'no end'],
    ['x'.repeat(300), `${'x'.repeat(200)}…`],
  ])('have the first sentence of the last error: %j', async (lastError, sentence) => {
    api.listing.list = async () => ({ tasks: [{ ...stored(ID), lastError }], more: false });
    const [, { tasks }] = (await outcome(await ask(''))) as [number, { tasks: object[] }];
    expect(tasks).toMatchObject([{ error_message: sentence }]);
  });

  it('are listed the oldest first if they wait for an answer of the caller, with what they ask', async () => {
    const asked: unknown[] = [];
    const message = agentMessage({ id: ID, contextId: 'c' }, 'm', [
      textPart('Which one?'),
      dataPart({ a: 1 }),
    ]);
    const status = {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message,
      timestamp: '2026-01-31T12:00:00.000Z',
    };
    const next = { statusAt: new Date('2026-01-31T12:00:00.000Z'), taskId: ID };
    api.listing.answerable = async ({ principal }, page, filter) => {
      asked.push([principal.kind, page, filter]);
      const task = sampleTask({ id: ID, status });
      const above = [{ taskId: UNKNOWN, agentId: 'lead' }];
      return { tasks: [{ ...stored(ID), task, firstMessage: 'Send it', above }], next };
    };
    const found = (await (await ask('?answerable=true&agent=echo&limit=5')).json()) as {
      next_cursor: string;
    };
    expect(found).toMatchObject({
      tasks: [
        {
          task_id: ID,
          first_message: 'Send it',
          question: [{ text: 'Which one?' }, { data: { a: 1 } }],
          ancestors: [{ task_id: UNKNOWN, agent_id: 'lead' }],
        },
      ],
    });
    await ask(`?answerable=true&cursor=${found.next_cursor}`);
    expect(asked).toEqual([
      ['token', { limit: 5, after: undefined }, { agentId: 'echo' }],
      ['token', { limit: 50, after: next }, {}],
    ]);
    expect(await outcome(await ask('?answerable=true', { token: 'reader' }))).toMatchObject([
      403,
      { error: { message: expect.stringContaining('agents:call') as string } },
    ]);
  });

  it.each([
    '?answerable=yes',
    '?answerable=true&q=x',
    '?counts=true&q=x',
    '?counts=true&answerable=true',
    '?limit=0',
    '?limit=101',
    '?limit=x',
    '?limit=1&limit=2',
    '?cursor=x',
    '?state=done',
    '?since=yesterday',
    '?context_id=c-1',
    '?agent=%00',
    '?q=%00x',
    `?q=${'a'.repeat(201)}`,
    `?agent=${'a'.repeat(MAX_CONTEXT_ID_LENGTH + 1)}`,
    `/${ID}/events?since_seq=x`,
    `/${ID}/artifacts?cursor=x`,
    `/${ID}/artifacts?cursor=${Buffer.from('2.2').toString('base64url')}`,
  ])('refuse %s, saying what is wrong', async (path) => {
    expect(await outcome(await ask(path))).toMatchObject([400, { error: { status: 'INVALID_PARAMS' } }]);
  });

  it('are read one by one, whichever agent they belong to', async () => {
    const [status, json] = await outcome(await ask(`/${ID}`, { token: 'reader' }));
    expect([status, json]).toMatchObject([
      200,
      {
        task_id: ID,
        agent_id: 'echo',
        state: 'completed',
        task: { status: { state: 'TASK_STATE_COMPLETED' } },
      },
    ]);
    expect(calls[0]).toMatchObject({ tenantId: 'tenant-1', rules: { taskScope: 'tenant' } });
  });

  it('have the calls of models with what each has cost', async () => {
    const call = {
      position: 2,
      runId: 'run-1',
      attempt: 2,
      at: '2026-01-31T12:00:00.000Z',
      ms: 1200,
      model: 'o/m',
      finish: 'tool-calls',
      providerFinish: 'tool_use',
      isNotMade: false,
      isSummary: false,
      inputTokens: 1000,
      outputTokens: 10,
      cachedTokens: 500,
      cacheWriteTokens: 100,
      tools: ['desk_sign'],
      error: null,
    };
    const failed = { ...call, model: 'o/other', finish: null, tools: [], error: 'o failed (500).' };
    api.stored.modelCalls = async () => [failed, call];
    const [, json] = (await outcome(await ask(`/${ID}`, { token: 'reader' }))) as [number, object];
    expect(json).toMatchObject({
      currency: 'EUR',
      model_calls: [
        { model: 'o/other', cost: null, error: 'o failed (500).' },
        {
          run_id: 'run-1',
          attempt: 2,
          at: '2026-01-31T12:00:00.000Z',
          ms: 1200,
          model: 'o/m',
          finish: 'tool-calls',
          provider_finish: 'tool_use',
          tools_not_made: false,
          is_summary: false,
          input_tokens: 1000,
          output_tokens: 10,
          cached_tokens: 500,
          cache_write_tokens: 100,
          cost: 0.0016,
          tools: ['desk_sign'],
          error: null,
        },
      ],
    });
  });

  it.each([
    [TaskState.TASK_STATE_FAILED, 'stopped'],
    [TaskState.TASK_STATE_WORKING, 'waiting'],
  ])('in the state %s say that a step without an end is %s', async (taskState, state) => {
    api.operations.getTask = async () => ({
      ...sampleTask({ id: ID, status: { state: taskState, message: undefined, timestamp: undefined } }),
    });
    const step = {
      name: 'translate',
      kind: 'agent',
      state: 'waiting' as const,
      attempts: 1,
      startedAt: '2026-01-31T12:00:00.000Z',
      endedAt: null,
      error: null,
      position: 1,
      callId: 'step-1-1',
    };
    api.stored.steps = async () => [step, { ...step, state: 'failed', error: 'e' }];
    const [, json] = (await outcome(await ask(`/${ID}`, { token: 'admin' }))) as [number, object];
    expect(json).toMatchObject({ steps: [{ state }, { state: 'failed' }] });
  });

  it('say in a list why they have failed', async () => {
    const reason = `openai refused the key (401). ${'x'.repeat(500)}`;
    const message = agentMessage({ id: ID, contextId: 'c' }, 'm', [textPart(reason)]);
    const status = { state: TaskState.TASK_STATE_FAILED, message, timestamp: '2026-01-31T12:00:00.000Z' };
    api.listing.list = async () => ({
      tasks: [{ ...stored(ID), task: sampleTask({ id: ID, status }) }],
      more: false,
    });
    const [, { tasks }] = (await outcome(await ask(''))) as [number, { tasks: object[] }];
    expect(tasks).toMatchObject([{ state: 'failed', status_message: `${reason.slice(0, 300)}…` }]);
  });

  it.each([`/${UNKNOWN}`, `/${UNKNOWN}/artifacts`, `/${UNKNOWN}/events`, '/not-an-id'])(
    'do not have %s',
    async (path) => {
      expect(await outcome(await ask(path))).toMatchObject([404, { error: { status: 'TASK_NOT_FOUND' } }]);
      expect((await ask(path, { token: '' })).status).toBe(401);
    },
  );

  it('have no control characters in their ids', async () => {
    const refused = { error: { status: 'INVALID_PARAMS', fields: [{ field: 'id' }] } };
    expect(await outcome(await ask('/%00'))).toMatchObject([400, refused]);
    expect((await ask('/%00', { token: '' })).status).toBe(401);
  });

  it.each(['', `/${ID}`, `/${ID}/artifacts`, `/${ID}/events`])(
    'need a scope at %j, and GET',
    async (path) => {
      expect((await ask(path, { token: 'nobody' })).status).toBe(403);
      const refused = await ask(path, { method: 'DELETE' });
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    },
  );
});

describe('a task that is sent again', () => {
  const again = (id = ID, token = 'caller') => ask(`/${id}/send-again`, { method: 'POST', token });
  let sent: SendMessageRequest[];
  const first: Message = {
    ...agentMessage({ id: ID, contextId: 'context-1' }, 'm-1', [textPart('hello')]),
    role: Role.ROLE_USER,
    metadata: { mine: 1 },
    referenceTaskIds: ['t-0'],
  };
  const later = { ...first, messageId: 'm-2', parts: [textPart('yes')] };
  beforeEach(() => {
    sent = [];
    api.operations.getTask = async (call) => {
      calls.push(call);
      return sampleTask({ id: ID, history: [first, later] });
    };
    api.operations.sendMessage = async (call, request) => {
      calls.push(call);
      sent.push(request);
      return { $case: 'task', value: sampleTask({ id: 'new', history: [] }) };
    };
  });

  it('is a new task with the first message, in the same context, that names the task before', async () => {
    const [status, json] = await outcome(await again());
    expect([status, json]).toMatchObject([201, { task_id: 'new', agent_id: 'echo', again_of: ID }]);
    const { message } = sent[0]!;
    expect(message).toEqual({
      ...first,
      messageId: message!.messageId,
      taskId: '',
      referenceTaskIds: ['t-0', ID],
    });
    expect(message!.messageId).not.toBe(first.messageId);
    expect(sent[0]!.configuration).toMatchObject({ returnImmediately: true });
    expect(calls.map(({ access }) => access)).toEqual(['read', 'write']);
  });

  it('has the metadata and the output modes of the first request, and not its receiver', async () => {
    api.stored.firstDetails = async () => ({
      metadata: { tone: 'formal' },
      configuration: {
        acceptedOutputModes: ['text/markdown'],
        historyLength: 3,
        returnImmediately: false,
        taskPushNotificationConfig: {
          tenant: '',
          taskId: '',
          id: 'c',
          url: 'https://receiver.example',
          token: '',
          authentication: undefined,
        },
      },
    });
    expect((await again()).status).toBe(201);
    expect(sent[0]).toMatchObject({
      metadata: { tone: 'formal' },
      configuration: { acceptedOutputModes: ['text/markdown'], returnImmediately: true },
    });
    expect(sent[0]!.configuration!.taskPushNotificationConfig).toBeUndefined();
  });

  it('needs a task that the caller sees, its first message, and the right to call agents', async () => {
    expect((await again(UNKNOWN)).status).toBe(404);
    expect((await again(ID, 'nobody')).status).toBe(403);
    expect((await again(ID, '')).status).toBe(401);
    api.operations.getTask = async () =>
      sampleTask({ id: ID, history: [later], metadata: { [TRUNCATED]: { historyMessages: 1 } } });
    expect(await outcome(await again())).toMatchObject([400, { error: { status: 'UNSUPPORTED_OPERATION' } }]);
    api.operations.getTask = async () => sampleTask({ id: ID, history: [] });
    expect((await again()).status).toBe(400);
    expect(sent).toEqual([]);
  });
});

describe('the artifacts of a task', () => {
  it('are read page by page, with the cursor of the page before', async () => {
    const { artifacts } = sampleTask();
    const asked: unknown[] = [];
    api.artifactPages.page = async ({ tenantId }, id, position) => {
      asked.push([tenantId, id, position]);
      const pieces = artifacts.map((artifact) => ({ append: position !== undefined, artifact }));
      return { head: 7, pieces, next: position ? undefined : { head: 7, after: 4 } };
    };
    const page = async (query: string) =>
      (await outcome(await ask(`/${ID}/artifacts${query}`, { token: 'reader' })))[1] as Record<
        string,
        unknown
      >;
    const first = await page('');
    expect(first).toMatchObject({ task_id: ID, as_of_event: 7 });
    expect(first.artifacts).toEqual(
      artifacts.map((artifact) => ({ append: false, artifact: Artifact.toJSON(artifact) })),
    );
    expect(await page(`?cursor=${String(first.next_cursor)}`)).toMatchObject({ next_cursor: null });
    expect(asked).toEqual([
      ['tenant-1', ID, undefined],
      ['tenant-1', ID, { head: 7, after: 4 }],
    ]);
  });
});

describe('the console of a task', () => {
  it('is read page by page, by tokens that see the task and may change agents', async () => {
    const line = (position: number) => ({
      position,
      at: new Date('2026-01-31T12:00:00.000Z'),
      level: 'warn' as const,
      text: `line ${position}`,
      runId: 'run-1',
      attempt: 2,
    });
    const asked: unknown[] = [];
    api.stored.consoleLines = async (tenantId, id, page) => {
      asked.push([tenantId, id, page]);
      return [line(page.after + 1), line(page.after + 2)].slice(0, page.after === 0 ? 2 : 1);
    };
    const page = (query: string) => ask(`/${ID}/logs${query}`, { token: 'author' });
    const [status, first] = (await outcome(await page('?limit=1'))) as [number, { next_cursor: string }];
    expect([status, first]).toMatchObject([
      200,
      {
        task_id: ID,
        lines: [
          {
            position: 1,
            at: '2026-01-31T12:00:00.000Z',
            level: 'warn',
            text: 'line 1',
            run_id: 'run-1',
            attempt: 2,
          },
        ],
      },
    ]);
    const [, last] = await outcome(await page(`?limit=1&cursor=${first.next_cursor}`));
    expect(last).toMatchObject({ lines: [{ position: 2 }], next_cursor: null });
    expect(asked).toEqual([
      ['tenant-1', ID, { after: 0, limit: 2 }],
      ['tenant-1', ID, { after: 1, limit: 2 }],
    ]);
    expect((await page('?cursor=x')).status).toBe(400);
    expect((await ask(`/${UNKNOWN}/logs`, { token: 'author' })).status).toBe(404);
    for (const token of ['reader', 'caller']) {
      expect(await outcome(await ask(`/${ID}/logs`, { token }))).toMatchObject([
        403,
        { error: { message: 'the token lacks the scope agents:write' } },
      ]);
    }
  });
});

describe('the times of the events of a task', () => {
  it('are read after a number, by those who see the task', async () => {
    const asked: unknown[] = [];
    api.stored.eventTimes = async (...of) => {
      asked.push(of);
      return [{ sequence: 2, at: new Date('2026-01-31T12:00:00.250Z') }];
    };
    expect(await outcome(await ask(`/${ID}/event-times?since_seq=1`, { token: 'reader' }))).toEqual([
      200,
      { task_id: ID, times: [{ seq: 2, at: '2026-01-31T12:00:00.250Z' }], more: false },
    ]);
    expect(asked).toEqual([['tenant-1', ID, 1, 1_000]]);
    expect((await ask(`/${ID}/event-times?since_seq=x`, { token: 'reader' })).status).toBe(400);
    expect((await ask(`/${UNKNOWN}/event-times`, { token: 'reader' })).status).toBe(404);
    expect(asked).toHaveLength(1);
    api.stored.eventTimes = async (_tenant, _task, after, limit) =>
      Array.from({ length: limit }, (_, i) => ({ sequence: after + 1 + i, at: new Date() }));
    const [, full] = await outcome(await ask(`/${ID}/event-times`, { token: 'reader' }));
    expect(full).toMatchObject({ more: true });
  });
});

describe('the trace of a task', () => {
  const at = new Date('2026-01-31T12:00:00.250Z');

  it('is for those who see the task, and its code for authors', async () => {
    const asked: unknown[] = [];
    api.traces.read = async (_caller, ...of) => {
      asked.push(of);
      const turn = { id: 'turn a', parentId: null, kind: 'turn', name: '1', startedAt: at } as const;
      return {
        spans: [{ ...turn, endedAt: null, state: 'running', answeredBy: 'token:ann' }],
        modelCalls: [],
      };
    };
    expect(await outcome(await ask(`/${ID}/trace`, { token: 'reader' }))).toMatchObject([
      200,
      {
        task_id: ID,
        spans: [
          {
            id: 'turn a',
            parent_id: null,
            kind: 'turn',
            name: '1',
            started_at: at.toISOString(),
            ended_at: null,
            state: 'running',
            answered_by: 'token:ann',
          },
        ],
        model_calls: [],
      },
    ]);
    expect(asked).toEqual([[ID, false]]);
    expect((await ask(`/${UNKNOWN}/trace`, { token: 'reader' })).status).toBe(404);
  });

  it('shows the content of a call to authors of agents alone', async () => {
    const content = [{ type: 'tool-call', toolCallId: 'c', toolName: 'weather', input: { city: 'Bern' } }];
    const entries = [
      { kind: 'step', message: { role: 'assistant', content } },
      { kind: 'result', call: 'call-1-1', tool: 'weather', result: { ok: true, content: 'sun' } },
      { execution: 1, id: 1, event: 'ended', result: '["letter"]' },
    ].map((value, i) => ({ runId: 'run', position: i + 1, value }));
    api.stored.entry = async (_tenant, _task, position) => entries[position - 1];
    api.stored.modelStep = async (_tenant, _task, number) => entries[number - 1];
    const token = 'author';
    expect(await outcome(await ask(`/${ID}/trace/1`, { token }))).toEqual([
      200,
      {
        task_id: ID,
        entry: 1,
        model: { text: '', reasoning: '', calls: [{ tool: 'weather', input: { city: 'Bern' } }] },
      },
    ]);
    expect(await outcome(await ask(`/${ID}/trace/2`, { token }))).toEqual([
      200,
      {
        task_id: ID,
        entry: 2,
        tool: { tool: 'weather', input: { city: 'Bern' }, ok: true, output: 'sun' },
      },
    ]);
    expect(await outcome(await ask(`/${ID}/trace/3`, { token }))).toEqual([
      200,
      { task_id: ID, entry: 3, step: { result: ['letter'], error: null } },
    ]);
    expect(await outcome(await ask(`/${ID}/trace/4`, { token }))).toEqual([200, { task_id: ID, entry: 4 }]);
    expect((await ask(`/${UNKNOWN}/trace/1`, { token })).status).toBe(404);
    expect((await ask(`/${ID}/trace/0`, { token })).status).toBe(400);
    expect((await ask(`/${ID}/trace/1`, { token: 'reader' })).status).toBe(403);
  });
});

describe('the record of a model call', () => {
  const record = {
    sent: {
      instructions: 'Be kind.',
      messages: [{ role: 'user' }],
      tools: [],
      parameters: {},
      left: { messages: 3, tools: 0 },
    },
    said: {
      text: 'Hi',
      reasoning: '',
      calls: [],
      finish: 'stop',
      providerFinish: 'end_turn',
      usage: { inputTokens: 9, outputTokens: 2, reasoningTokens: 0, cachedInputTokens: 4 },
      response: { model: 'm-1' },
      error: null,
      complaint: null,
      left: { characters: 0, calls: 0 },
    },
  };

  it('is shown to those who see the task and have its scope', async () => {
    api.stored.record = async (_tenant, _task, position) =>
      position === 2 ? record : position === 3 ? 'odd' : undefined;
    const token = 'inspector';
    const [status, body] = await outcome(await ask(`/${ID}/trace/2/record`, { token }));
    expect([status, body]).toMatchObject([
      200,
      {
        entry: 2,
        record: {
          sent: { instructions: 'Be kind.', left_out: { messages: 3, tools: 0 } },
          said: {
            text: 'Hi',
            provider_finish: 'end_turn',
            cached_tokens: 4,
            response_id: null,
            response_model: 'm-1',
          },
        },
      },
    ]);
    // Nothing is recorded, or a tenant was imported with something else.
    for (const entry of [3, 4]) {
      expect(await outcome(await ask(`/${ID}/trace/${entry}/record`, { token }))).toEqual([
        200,
        { task_id: ID, entry, record: null },
      ]);
    }
    expect((await ask(`/${UNKNOWN}/trace/2/record`, { token })).status).toBe(404);
    expect((await ask(`/${ID}/trace/0/record`, { token })).status).toBe(400);
    for (const other of ['reader', 'author']) {
      const refused = await ask(`/${ID}/trace/2/record`, { token: other });
      expect(refused.status).toBe(403);
      expect(await refused.text()).toContain('records:read');
    }
  });
});

describe('the log of a task', () => {
  const records = async (path: string, headers = {}) =>
    (await (await ask(`/${ID}/events${path}`, { headers })).text()).trim().split('\n\n');

  it('is replayed from its beginning, with sequences as ids', async () => {
    const all = await records('');
    expect(all.map((record) => record.split('\n')[0])).toEqual(['id: 1', 'id: 2', 'id: 3']);
    expect(JSON.parse(all[1]!.split('data: ')[1]!)).toMatchObject({
      seq: 2,
      statusUpdate: { taskId: 'task-1', status: { state: 'TASK_STATE_WORKING' } },
    });
    expect(await records('?since_seq=0')).toEqual(all);
  });

  it('has events as they are stored, and parses none', async () => {
    class Unparsed implements StreamItem {
      readonly sequence = 7;
      readonly json = '{"artifactUpdate":{"artifact":{"artifactId":"a"},"later":1}}';
      get payload(): never {
        throw new Error('it was parsed');
      }
    }
    const { subscribeToTask } = api.operations;
    api.operations.subscribeToTask = async function* () {
      yield [new Unparsed()];
    };
    expect(await records('?since_seq=6')).toEqual([
      'id: 7\ndata: {"seq":7,"artifactUpdate":{"artifact":{"artifactId":"a"},"later":1}}',
    ]);
    api.operations.subscribeToTask = subscribeToTask!;
  });

  it('goes on after a sequence, the last one a browser has seen before all', async () => {
    expect((await records('?since_seq=2')).map((record) => record.slice(0, 5))).toEqual(['id: 3']);
    await records('?since_seq=1', { 'last-event-id': '2' });
    expect(calls.map(({ lastEventId }) => lastEventId)).toEqual([2, 2]);
  });
});

describe('canceling a task', () => {
  const cancel = async (id: string, token = 'caller') =>
    outcome(await ask(`/${id}/cancel`, { method: 'POST', token }));

  it('says that it was canceled', async () => {
    expect(await cancel(ID)).toEqual([200, { task_id: ID, cancelled: true }]);
  });

  it('says why it was not', async () => {
    const refusal = { cancelled: false, reason: expect.any(String) as unknown };
    expect(await cancel(UNKNOWN)).toEqual([404, { task_id: UNKNOWN, ...refusal }]);
    api.operations.cancelTask = async () => {
      throw new ProtocolError('task-not-cancelable', 'The task has ended');
    };
    expect(await cancel(ID)).toEqual([404, { task_id: ID, cancelled: false, reason: 'The task has ended' }]);
    expect(await cancel(ID, 'reader')).toMatchObject([403, { error: { code: 403 } }]);
  });
});
