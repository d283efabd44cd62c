import { describeContract } from '../support/contract.js';
import { type Answer, exchange, type Headers, type Watch } from '../support/wire.js';

const UNKNOWN = 'a2a-task-unknown';

describeContract(
  'orloj',
  {
    prepare: (api) =>
      Promise.all([
        api.createAgent('summarizer'),
        api.createAgent('hidden', { a2aEnabled: false }),
        api.createAgent('one', {}, api.other.slug),
        api.createAgent('two', {}, api.other.slug),
      ]),
  },
  (api) => {
    let tasks = 0;
    const SYSTEM = '/v1/agent-systems/summarizer/a2a';
    const call = (method: string, params: object, path = '/a2a', headers: Headers = {}, watch?: Watch) =>
      api.post(path, { jsonrpc: '2.0', id: 'req-1', method, params }, headers, watch);
    const message = (text: string, more: object = {}) => ({
      role: 'user',
      parts: [{ type: 'text', text }] as object[],
      ...more,
    });
    const nextId = () => `task-${String(++tasks).padStart(3, '0')}`;
    const send = (text: string, more: object = {}, id = nextId(), params: object = {}): Promise<Answer> =>
      call('tasks/send', { id, message: message(text, more), ...params });
    const get = async (id: string) => (await call('tasks/get', { id })).json.result;
    const answered = ({ json }: Answer) => json.result.artifacts[0].parts[0].text as string;
    const subscribe = (id: string, agent: string, watch?: Watch, more: object = {}) =>
      call(
        'tasks/sendSubscribe',
        { id, message: message('go', more), metadata: { agent } },
        '/a2a',
        {},
        watch,
      );

    it('O-1 the path names the agent; on `/a2a` `metadata.agent` or `.target` does, else it is the only enabled one', async () => {
      const params = (metadata?: object) => ({ id: nextId(), message: message('hi'), metadata });
      for (const path of [SYSTEM, '/v1/agents/summarizer/a2a', '/v1/agent-systems/echo/a2a']) {
        expect((await call('tasks/send', params(), path)).json.result.status.state).toBe('completed');
      }
      const index = await call('tasks/send', params({ agent: 'index', target: 'echo' }));
      expect(index.json.result.artifacts[0].name).toBe('agents');
      expect(answered(await call('tasks/send', params({ target: 'echo' })))).toBe('hi');
      const single = await call('tasks/send', params());
      expect(answered(single)).toBe('hi');
      const several = await call('tasks/send', params(), '/a2a', api.stranger);
      expect(several.json.error.code).toBe(-32602);
      for (const path of ['/a2a', '/v1/agent-systems/echo/a2a']) {
        const answer = await call('tasks/get', { id: single.json.result.id }, path);
        expect(answer.json.result.status.state).toBe('completed');
      }
    });

    it('O-2 `id` is a string or integer; a notification is executed and answered with 204', async () => {
      for (const id of ['req-1', 7]) {
        const body = { jsonrpc: '2.0', id, method: 'tasks/get', params: { id: UNKNOWN } };
        expect((await api.post('/a2a', body)).json.id).toBe(id);
      }
      const id = nextId();
      const body = { jsonrpc: '2.0', method: 'tasks/send', params: { id, message: message('hi') } };
      const answer = await api.post('/a2a', body);
      expect([answer.status, answer.text]).toEqual([204, '']);
      expect((await get(id)).history[0].parts).toEqual([{ type: 'text', text: 'hi' }]);
      const failing = await api.post('/a2a', { ...body, params: {} });
      expect(failing.json).toMatchObject({ id: null, error: { code: -32602 } });
    });

    it('O-3 `tasks/send` waits for the final task', async () => {
      const answer = await send('Summarize this document', {
        metadata: { echo: { chunks: 2, delayMs: 30 } },
      });
      expect(answer.json.result.status).toEqual({
        state: 'completed',
        message: {
          role: 'agent',
          parts: [{ type: 'text', text: 'Summarize this documentSummarize this document' }],
        },
      });
    });

    it('O-4 a missing `params.id` or `params.message` is -32602', async () => {
      for (const method of ['tasks/send', 'tasks/sendSubscribe']) {
        for (const params of [
          { message: message('hi') },
          { id: nextId() },
          { id: '', message: message('hi') },
        ]) {
          const answer = await call(method, params);
          expect([answer.status, answer.json.error.code]).toEqual([200, -32602]);
        }
      }
    });

    it('O-5 `metadata` is a map of strings, kept on the task', async () => {
      const answer = await send('hi', {}, nextId(), { metadata: { source: 'external-workflow', n: '7' } });
      expect(answer.json.result.metadata).toMatchObject({ source: 'external-workflow', n: '7' });
      expect((await get(answer.json.result.id)).metadata).toMatchObject({ source: 'external-workflow' });
      const refused = await send('hi', {}, nextId(), { metadata: { n: 7 } });
      expect(refused.json.error.code).toBe(-32602);
    });

    it('O-6 the result is the bare task, and both its ids work', async () => {
      const id = 'task-summary';
      const answer = await send('Summarize this document', {}, id, { metadata: { source: 'workflow' } });
      const { result } = answer.json;
      expect(Object.keys(result).sort()).toEqual(['artifacts', 'history', 'id', 'metadata', 'status']);
      expect(await get(id)).toEqual(await get(result.id));
      for (const either of [id, result.id]) {
        expect((await call('tasks/cancel', { id: either })).json.error.code).toBe(-32002);
      }
      api.expectGolden('tasks-send', answer);
    });

    it('O-7 artifacts have `name`, `description`, `parts` and an integer `index`', async () => {
      const parts = [
        { type: 'text', text: 'see' },
        { type: 'data', data: { a: [1, null] } },
      ];
      const answer = await send('', { parts }, 'task-artifacts');
      expect(answer.json.result.artifacts).toEqual([
        { name: 'echo', description: expect.any(String), parts, index: 0 },
      ]);
      const several = await send('', {}, nextId(), { metadata: { agent: 'teller' } });
      expect(several.json.result.artifacts.map(({ index }: { index: number }) => index)).toEqual([
        0, 1, 2, 3, 4,
      ]);
      api.expectGolden('artifacts', answer);
    });

    it('O-8 an equal message joins its task, an answer continues it, any other message starts a new turn', async () => {
      const id = nextId();
      const first = (await send('one', {}, id)).json.result;
      expect((await send('one', {}, id)).json.result.id).toBe(first.id);
      const second = (await send('two', {}, id)).json.result;
      expect(second.id).not.toBe(first.id);
      const texts = second.history.map(({ parts }: { parts: { text: string }[] }) => parts[0]!.text);
      expect(texts).toEqual(['one', 'one', 'two', 'two']);
      expect(await get(id)).toEqual(await get(second.id));
      expect((await get(first.id)).artifacts).toEqual(first.artifacts);
      const question = nextId();
      const asked = (await send('ask me', { metadata: { echo: { askInput: true } } }, question)).json.result;
      expect(asked.status.state).toBe('input-required');
      const answer = (await send('an answer', {}, question)).json.result;
      expect(answer).toMatchObject({ id: asked.id, status: { state: 'completed' } });
    });

    it('O-9 `tasks/cancel` sets the task to `canceled` and keeps the reason', async () => {
      const id = nextId();
      await subscribe(id, 'stubborn', async ({ data }) => {
        if (data.status.state !== 'working') return;
        const reason = 'No longer needed';
        expect((await call('tasks/cancel', { id, reason: 'x'.repeat(1025) })).json.error.code).toBe(-32602);
        const answer = await call('tasks/cancel', { id, reason });
        expect(answer.json.result.status.state).toBe('canceled');
        expect(Object.values(answer.json.result.metadata)).toContain(reason);
      });
      expect(Object.values((await get(id)).metadata)).toContain('No longer needed');
      expect((await call('tasks/cancel', { id })).json.result.status.state).toBe('canceled');
    });

    it('O-10 `tasks/sendSubscribe` streams `event: status` with the bare full task to a terminal state', async () => {
      const answer = await subscribe('task-stream', 'echo', undefined, {
        metadata: { echo: { chunks: 2 } },
      });
      expect(answer.headers['content-type']).toMatch(/^text\/event-stream/);
      expect(answer.records.map(({ event }) => event)).toEqual(answer.records.map(() => 'status'));
      for (const { data } of answer.records) {
        expect(data).toMatchObject({ id: expect.any(String), status: {}, artifacts: expect.any(Array) });
        expect(data).not.toHaveProperty('jsonrpc');
      }
      expect(answer.records.at(-1)!.data).toMatchObject({
        status: { state: 'completed' },
        artifacts: [{ parts: [{ type: 'text', text: 'gogo' }] }],
      });
      api.expectGolden('tasks-sendSubscribe', answer);
    });

    it('O-11 a heartbeat comment keeps a silent stream alive', async () => {
      const metadata = { echo: { delayMs: 700 } };
      const chatty = await api.stack.addApi({ SSE_HEARTBEAT_MS: '200' });
      const params = { id: nextId(), message: message('go', { metadata }), metadata: { agent: 'echo' } };
      const headers = { authorization: `Bearer ${api.tenant.token}`, 'content-type': 'application/json' };
      const body = { jsonrpc: '2.0', id: 'req-1', method: 'tasks/sendSubscribe', params };
      const answer = await exchange(chatty.url, { method: 'POST', path: '/a2a', headers, body });
      expect(answer.text).toContain('\n: heartbeat\n\n');
      expect(answer.text).toMatch(/"state":"completed"/);
    });

    it('O-12 the states have Orloj’s names', async () => {
      const id = nextId();
      const stateOf = async (metadata: object) => (await send('hi', { metadata })).json.result.status.state;
      expect(await stateOf({})).toBe('completed');
      expect(await stateOf({ echo: { askInput: true } })).toBe('input-required');
      expect(await stateOf({ echo: { fail: 'failed' } })).toBe('failed');
      expect(await stateOf({ echo: { fail: 'throw' } })).toBe('failed');
      const seen = await subscribe(id, 'stubborn', async ({ data }) => {
        if (data.status.state === 'working') await call('tasks/cancel', { id });
      });
      const states = seen.records.map(({ data }) => data.status.state as string);
      expect([...new Set(states)]).toEqual(['submitted', 'working', 'canceled']);
    });

    it('O-13 -32001 with `data.task_id`, -32002 for a canceled task, -32003 for an agent not found or not enabled', async () => {
      const missing = await call('tasks/get', { id: UNKNOWN });
      expect(missing.status).toBe(200);
      expect(missing.json.error).toEqual({
        code: -32001,
        message: 'task not found',
        data: { task_id: UNKNOWN },
      });
      api.expectGolden('unknown-task', missing);
      const { id } = (await send('hi')).json.result;
      expect((await call('tasks/get', { id }, '/a2a', api.stranger)).json.error.code).toBe(-32001);
      const canceled = nextId();
      await subscribe(canceled, 'stubborn', async ({ data }) => {
        if (data.status.state === 'working') await call('tasks/cancel', { id: canceled });
      });
      const again = await send('another', {}, canceled, { metadata: { agent: 'stubborn' } });
      expect(again.json.error).toMatchObject({ code: -32002, message: 'task cancelled' });
      for (const agent of ['nobody', 'hidden']) {
        const params = { id: nextId(), message: message('hi') };
        const inPath = await call('tasks/send', params, `/v1/agent-systems/${agent}/a2a`);
        const named = await call('tasks/send', { ...params, metadata: { agent } });
        for (const { status, json } of [inPath, named])
          expect([status, json.error.code]).toEqual([200, -32003]);
      }
    });
  },
);
