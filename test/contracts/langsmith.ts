import { randomUUID } from 'node:crypto';
import { describeContract } from '../support/contract.js';
import { type Answer, freshId, type Headers, type Watch } from '../support/wire.js';

const JSON_ONLY = 'application/json';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let assistant = '';

describeContract(
  'langsmith',
  {
    headers: { Accept: JSON_ONLY },
    prepare: async (api) => (assistant = await api.createAgent('assistant')),
  },
  (api) => {
    const message = (text: string, more: object = {}) => ({
      role: 'user',
      parts: [{ kind: 'text', text }] as object[],
      messageId: freshId('msg'),
      ...more,
    });
    const call = (method: string, params: object, to = assistant, headers: Headers = {}, watch?: Watch) =>
      api.post(`/a2a/${to}`, { jsonrpc: '2.0', id: '1', method, params }, headers, watch);
    const send = (text: string, more: object = {}, to = assistant): Promise<Answer> =>
      call('message/send', { message: message(text, more) }, to);
    const stream = (text: string, more: object = {}, to = assistant, watch?: Watch) =>
      call('message/stream', { message: message(text, more) }, to, { Accept: 'text/event-stream' }, watch);
    const textOf = ({ json }: Answer) => json.result.artifacts[0].parts[0].text as string;

    it('L-1 `assistant_id` is the agent’s uuid, and its slug works too', async () => {
      expect(assistant).toMatch(/^[\da-f-]{36}$/);
      for (const to of [assistant, 'assistant', 'echo']) {
        expect((await send('Hello from A2A', {}, to)).json.result.status.state).toBe('completed');
      }
    });

    it('L-2 `Accept` must allow what the method answers with, else HTTP 400', async () => {
      const refused = async (method: string, accept: string | undefined) => {
        const answer = await call(method, { message: message('hi') }, assistant, { Accept: accept });
        return answer.status === 400 && answer.json.error.code === -32600;
      };
      expect(await refused('message/send', 'text/event-stream')).toBe(true);
      expect(await refused('message/send', undefined)).toBe(true);
      expect(await refused('message/stream', JSON_ONLY)).toBe(true);
      expect(await refused('message/send', '*/*')).toBe(false);
      expect(await refused('message/send', `${JSON_ONLY}, text/event-stream`)).toBe(false);
      expect(await refused('message/stream', `${JSON_ONLY}, text/event-stream`)).toBe(false);
      api.expectGolden('accept', await call('message/stream', { message: message('hi') }));
    });

    it('L-4 `id` must be present, else HTTP 400 and -32600', async () => {
      const params = { message: message('hi') };
      const answer = await api.post(`/a2a/${assistant}`, { jsonrpc: '2.0', method: 'message/send', params });
      expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([400, null, -32600]);
    });

    it('L-5 the methods are `message/send`, `message/stream`, `tasks/get` and `tasks/cancel`', async () => {
      const { id } = (await send('hi')).json.result;
      expect((await stream('hi')).records.length).toBeGreaterThan(1);
      expect((await call('tasks/get', { id })).json.result.id).toBe(id);
      expect((await call('tasks/cancel', { id })).json.error.code).toBe(-32002);
      expect((await call('tasks/frobnicate', { id })).json.error.code).toBe(-32601);
    });

    it('L-6 `message/send` waits for the final task', async () => {
      const answer = await send('ab', { metadata: { echo: { chunks: 3, delayMs: 30 } } });
      expect(answer.json.result.status.state).toBe('completed');
      expect(textOf(answer)).toBe('ababab');
    });

    it('L-7 the result is a completed task with named artifacts of text', async () => {
      const answer = await send('Hello from A2A', { contextId: 'f5bd2a40-74b6-4f7a-b649-ea3f09890003' });
      expect(answer.json).toMatchObject({
        jsonrpc: '2.0',
        id: '1',
        result: {
          kind: 'task',
          id: expect.any(String),
          contextId: 'f5bd2a40-74b6-4f7a-b649-ea3f09890003',
          status: { state: 'completed' },
          artifacts: [
            {
              artifactId: expect.any(String),
              name: expect.stringMatching(/./),
              parts: [{ kind: 'text', text: 'Hello from A2A' }],
            },
          ],
        },
      });
      api.expectGolden('message-send', answer);
    });

    it('L-8 a second message in a `contextId` continues the conversation', async () => {
      const contextId = randomUUID();
      const said = async (text: string, messageId: string, context = contextId) =>
        textOf(await send(text, { contextId: context, messageId }, 'recall'));
      expect(await said('I am Ada', 'm-1')).toBe('I am Ada');
      expect(await said('Who am I?', 'm-2')).toBe('I am Ada | Who am I?');
      expect(await said('And again?', 'm-3')).toBe('I am Ada | Who am I? | And again?');
      expect(await said('Who am I?', 'm-4', randomUUID())).toBe('Who am I?');
    });

    it('L-9 a `contextId` that is left out is made and returned', async () => {
      const [one, two] = [await send('a'), await send('b')].map(({ json }) => json.result.contextId);
      expect(one).toMatch(/./);
      expect(two).not.toBe(one);
    });

    it('L-10 `text` and `data` parts mix in one message', async () => {
      const parts = [
        { kind: 'text', text: 'Hello from A2A' },
        { kind: 'data', data: { locale: 'en-US' } },
      ];
      const answer = await send('', { parts });
      expect(answer.json.result.artifacts[0].parts).toEqual(parts);
      api.expectGolden('text-and-data', answer);
    });

    it('L-11 `file` parts are -32005 unless the agent declares them', async () => {
      const file = { name: 'a.txt', mimeType: 'text/csv', bytes: 'aGk=' };
      const parts = [{ kind: 'file', file }];
      const answer = await send('', { parts });
      expect([answer.status, answer.json.error.code]).toEqual([200, -32005]);
      expect((await send('', { parts }, 'echo')).json.result.artifacts[0].parts).toEqual(parts);
    });

    it('L-13 a stream is SSE of JSON-RPC envelopes with the request’s id', async () => {
      const answer = await stream('Hello');
      expect(answer.headers['content-type']).toMatch(/^text\/event-stream/);
      expect(answer.records.map(({ data }) => [data.jsonrpc, data.id])).toEqual(
        answer.records.map(() => ['2.0', '1']),
      );
      const kinds = answer.records.map(({ data }) => data.result.kind as string);
      expect(kinds).toEqual(expect.arrayContaining(['artifact-update', 'status-update']));
      expect(answer.records.at(-1)!.data.result).toMatchObject({
        status: { state: 'completed' },
        final: true,
      });
      api.expectGolden('message-stream', answer);
    });

    it('L-14 `tasks/get` takes `historyLength`', async () => {
      const { id } = (await send('hi', { messageId: 'msg-14' })).json.result;
      const historyOf = async (historyLength?: number) =>
        (await call('tasks/get', { id, historyLength })).json.result.history as object[] | undefined;
      expect(await historyOf()).toMatchObject([{ role: 'user', messageId: 'msg-14' }]);
      expect((await historyOf(0)) ?? []).toEqual([]);
      expect(await historyOf(1)).toHaveLength(1);
    });

    it('L-15 `tasks/cancel` cancels a running task', async () => {
      const answer = await stream('go', {}, 'stubborn', async ({ data: { result } }) => {
        if (result.kind !== 'artifact-update') return;
        const canceled = await call('tasks/cancel', { id: result.taskId }, 'stubborn');
        expect(canceled.json.result).toMatchObject({ kind: 'task', status: { state: 'canceled' } });
      });
      expect(answer.records.at(-1)!.data.result).toMatchObject({
        status: { state: 'canceled' },
        final: true,
      });
    });

    it('L-16 an unknown assistant is HTTP 404', async () => {
      const answer = await send('hi', {}, UNKNOWN);
      expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([404, '1', -32001]);
      const params = { message: message('hi') };
      expect((await call('message/send', params, assistant, api.stranger)).status).toBe(404);
    });
  },
);
