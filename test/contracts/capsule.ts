import { randomUUID } from 'node:crypto';
import { describeContract } from '../support/contract.js';
import { withoutTable } from '../support/database.js';
import type { Answer, Watch } from '../support/wire.js';

const HOST = 'capsule.example';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

describeContract(
  'capsule',
  {
    // A client of Capsule has no token: the host's name identifies the tenant.
    headers: { Host: HOST, authorization: undefined },
    prepare: (api) =>
      Promise.all([
        api.stack.baton('hosts', 'bind', HOST, '--tenant', api.tenant.slug, '--agent', 'echo', '--public'),
        api.stack.baton(
          'hosts',
          'bind',
          `slow.${HOST}`,
          '--tenant',
          api.tenant.slug,
          '--agent',
          'stubborn',
          '--public',
        ),
      ]),
  },
  (api) => {
    const call = (method: string, params: object, id: unknown = 'req-1', host = HOST) =>
      api.post('/', { jsonrpc: '2.0', id, method, params }, { Host: host });
    const message = (text: string, more: object = {}) => ({
      role: 'user',
      parts: [{ kind: 'text', text }],
      messageId: randomUUID(),
      ...more,
    });
    const send = (text: string, more: object = {}): Promise<Answer> =>
      call('message/send', { message: message(text, more), metadata: {} }, 1);
    const stream = (text: string, host = HOST, watch?: Watch): Promise<Answer> => {
      const params = { message: message(text, { messageId: undefined }) };
      const body = { jsonrpc: '2.0', id: 'stream-001', method: 'message/stream', params };
      return api.post('/', body, { Host: host, Accept: 'text/event-stream' }, watch);
    };

    it('C-1 `jsonrpc` must be "2.0"', async () => {
      for (const jsonrpc of [undefined, '1.0', 2]) {
        const body = { jsonrpc, id: 'req-1', method: 'message/send', params: { message: message('hi') } };
        expect((await api.post('/', body)).json).toMatchObject({ id: 'req-1', error: { code: -32600 } });
      }
    });

    it('C-2 `id` is a string or a number', async () => {
      for (const id of ['req-1', 1, 0, '']) {
        expect((await call('tasks/get', { id: UNKNOWN }, id)).json.id).toBe(id);
      }
      for (const id of [true, {}, [1]]) {
        expect((await call('tasks/get', { id: UNKNOWN }, id)).json.error.code).toBe(-32600);
      }
    });

    it('C-3 `message/send` creates or continues a task', async () => {
      const created = await send('tell me a joke');
      expect(created.json.result).toMatchObject({ kind: 'task', status: { state: 'completed' } });
      const asked = (await send('ask me', { metadata: { echo: { askInput: true } } })).json.result;
      expect(asked.status.state).toBe('input-required');
      const answered = (await send('an answer', { messageId: 'm-2', taskId: asked.id })).json.result;
      expect(answered).toMatchObject({ id: asked.id, status: { state: 'completed' } });
      api.expectGolden('message-send', created);
    });

    it('C-4 `message/stream` accepts a message without `messageId`', async () => {
      const answer = await stream('Generate a short report');
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toMatch(/^text\/event-stream/);
      expect(answer.records.at(-1)!.data.result.status.state).toBe('completed');
      api.expectGolden('message-stream', answer);
    });

    it('C-5 frames carry the wrapper member and the flat fields, a unary result the flat task', async () => {
      const frames = (await stream('report')).records.map(({ data }) => data.result);
      const KINDS = { task: 'task', statusUpdate: 'status-update', artifactUpdate: 'artifact-update' };
      const seen = frames.map((frame) => {
        const [wrapper, kind] = Object.entries(KINDS).find(([name]) => name in frame)!;
        const { [wrapper]: wrapped, ...flat } = frame;
        expect(flat.kind).toBe(kind);
        expect(wrapped).toEqual(flat);
        return wrapper;
      });
      expect(seen[0]).toBe('task');
      expect(new Set(seen)).toEqual(new Set(Object.keys(KINDS)));
      const unary = (await send('hi')).json.result;
      expect(unary.kind).toBe('task');
      expect(unary).not.toHaveProperty('task');
    });

    it('C-6 `tasks/get` honours `historyLength`', async () => {
      const asked = (await send('ask me', { metadata: { echo: { askInput: true } } })).json.result;
      const historyOf = async (historyLength?: number) =>
        (await call('tasks/get', { id: asked.id, historyLength }, 'task-1')).json.result.history ?? [];
      expect(await historyOf()).toHaveLength(2);
      expect(await historyOf(20)).toHaveLength(2);
      expect(await historyOf(1)).toMatchObject([{ role: 'agent' }]);
      expect(await historyOf(0)).toEqual([]);
    });

    it('C-7 `tasks/cancel` cancels a running task', async () => {
      const host = `slow.${HOST}`;
      const seen = await stream('go', host, async ({ data: { result } }) => {
        if (!result.artifactUpdate) return;
        const answer = await call('tasks/cancel', { id: result.taskId }, 'cancel-1', host);
        expect(answer.json).toMatchObject({ id: 'cancel-1', result: { status: { state: 'canceled' } } });
      });
      expect(seen.records.at(-1)!.data.result.statusUpdate.status.state).toBe('canceled');
      const { id } = (await send('hi')).json.result;
      expect((await call('tasks/cancel', { id }, 'cancel-1')).json.error.code).toBe(-32002);
    });

    it('C-8 invalid JSON is -32700, an internal failure is -32603 `Internal error`', async () => {
      const garbled = await api.post('/', '{"jsonrpc":"2.0",');
      expect([garbled.status, garbled.json.id, garbled.json.error.code]).toEqual([200, null, -32700]);
      const internal = { code: -32603, message: 'Internal error' };
      const thrown = await send('hi', { metadata: { echo: { fail: 'throw' } } });
      expect(thrown.json).toMatchObject({ id: 1, error: internal });
      const broken = await withoutTable(api.stack.database.url, 'runs', () => send('hi'));
      expect(broken.json).toMatchObject({ id: 1, error: internal });
      api.expectGolden('internal-error', thrown);
    });
  },
);
