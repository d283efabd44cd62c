import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describeContract } from '../support/contract.js';
import { gaugeBecomes } from '../support/gauges.js';
import { type Answer, exchange, type Headers } from '../support/wire.js';

const MIB = 1_048_576;
const HOST = 'society.example';
const PRIVATE = 'private.society.example';
/** The agent `pacer` holds its breath as long as there is this file. */
const HOLD_FILE = join(mkdtempSync(join(tmpdir(), 'baton-society-')), 'hold');

describeContract(
  'society',
  {
    headers: { Host: HOST, authorization: undefined },
    env: { SEND_WAIT_MS: '120000', HOLD_FILE },
    prepare: (api) => {
      const bind = (host: string, agent: string, ...more: string[]) =>
        api.stack.baton('hosts', 'bind', host, '--tenant', api.tenant.slug, '--agent', agent, ...more);
      return Promise.all([
        bind(HOST, 'echo', '--public'),
        bind(PRIVATE, 'echo'),
        bind(`recall.${HOST}`, 'recall', '--public'),
        bind(`stubborn.${HOST}`, 'stubborn', '--public'),
        bind(`pacer.${HOST}`, 'pacer', '--public'),
      ]);
    },
  },
  (api) => {
    afterAll(() => rmSync(dirname(HOLD_FILE), { recursive: true }));
    let threads = 0;
    const post = (id: string, message: object, headers: Headers = {}, envelopeId: unknown = id) =>
      api.post(
        '/',
        { jsonrpc: '2.0', id: envelopeId, method: 'tasks/send', params: { id, message } },
        headers,
      );
    const message = (text: string, more: object = {}) => ({
      role: 'user',
      parts: [{ type: 'text', text }],
      ...more,
    });
    const send = (text: string, more: object = {}, id = `thread-${++threads}`): Promise<Answer> =>
      post(id, message(text, more));
    const ask = async (id: string, text: string) =>
      (await post(id, message(text), { Host: `recall.${HOST}` })).json.result.artifacts;

    it('S-1 `GET /.well-known/agent.json` is the card', async () => {
      const answer = await api.get('/.well-known/agent.json', { Host: HOST, authorization: undefined });
      expect(answer.status).toBe(200);
      expect(answer.json).toMatchObject({
        name: 'Echo',
        description: expect.any(String),
        url: expect.stringContaining(HOST),
        skills: [{ id: expect.any(String), name: expect.any(String) }],
        capabilities: { streaming: expect.any(Boolean), pushNotifications: false },
      });
      api.expectGolden('card', answer);
    });

    it('S-2 `params.id` names the thread, whatever the envelope’s id is', async () => {
      const answer = await post('task-2', message('Hello, agent'), {}, 'another-id');
      expect(answer.json).toMatchObject({ id: 'another-id', result: { id: 'task-2' } });
    });

    it('S-3 the same id again continues the conversation', async () => {
      expect(await ask('task-3', 'I am Ada')).toMatchObject([{ parts: [{ text: 'I am Ada' }] }]);
      expect(await ask('task-3', 'Who am I?')).toMatchObject([{ parts: [{ text: 'I am Ada | Who am I?' }] }]);
      expect(await ask('task-3-b', 'Who am I?')).toMatchObject([{ parts: [{ text: 'Who am I?' }] }]);
    });

    it('S-4 the result is the id that was sent, two strings, and this turn’s reply as artifacts', async () => {
      const answer = await post('task-123', message('Hello, agent'));
      expect(answer.json).toEqual({
        jsonrpc: '2.0',
        id: 'task-123',
        result: {
          id: 'task-123',
          status: { state: 'completed', message: '' },
          messages: [],
          artifacts: [{ name: 'echo', parts: [{ type: 'text', text: 'Hello, agent' }] }],
        },
      });
      const second = await post('task-123', message('Something else'));
      expect(second.json.result.artifacts).toMatchObject([{ parts: [{ text: 'Something else' }] }]);
      api.expectGolden('tasks-send', answer);
      api.expectGolden('second-turn', second);
    });

    it('S-5 the states are `submitted, working, completed, failed, cancelled`', async () => {
      expect((await send('hi')).json.result.status.state).toBe('completed');
      const failed = (await send('hi', { metadata: { echo: { fail: 'failed' } } })).json.result.status;
      expect(failed).toEqual({ state: 'failed', message: expect.stringMatching(/./) });
      const sent = post('task-5', message('go'), { Host: `stubborn.${HOST}` });
      await cancelWhenAtWork('stubborn');
      expect((await sent).json.result.status.state).toBe('cancelled');
    });

    it('S-6 other part types are -32602', async () => {
      for (const part of [
        { type: 'data', data: {} },
        { type: 'file', file: { uri: 'https://x' } },
        { type: 'image' },
      ]) {
        const answer = await send('', { parts: [{ type: 'text', text: 'x' }, part] });
        expect([answer.status, answer.json.error.code]).toEqual([200, -32602]);
      }
    });

    it('S-7 an unknown method is -32601 `method not found: <method>`', async () => {
      const body = { jsonrpc: '2.0', id: 'task-123', method: 'unknown/method', params: { id: 'task-123' } };
      const answer = await api.post('/', body);
      expect(answer.json).toMatchObject({
        jsonrpc: '2.0',
        id: 'task-123',
        error: { code: -32601, message: 'method not found: unknown/method' },
      });
      api.expectGolden('unknown-method', answer);
    });

    it('S-8 a body of 1 048 576 bytes is accepted, one byte more is 413', async () => {
      const body = (bytes: number) => {
        const text = (filling: string) =>
          JSON.stringify({
            jsonrpc: '2.0',
            id: 'large',
            method: 'tasks/send',
            params: { id: `large-${bytes}`, message: message(filling) },
          });
        return text('a'.repeat(bytes - text('').length));
      };
      const accepted = await api.post('/', body(MIB));
      expect([accepted.status, accepted.json.result?.status.state]).toEqual([200, 'completed']);
      const refused = await api.post('/', body(MIB + 1));
      expect([refused.status, refused.json.id]).toEqual([413, null]);
    });

    it('S-9 after the time limit the answer is the task, still `working`, and the run continues', async () => {
      // It does not continue before the file is removed.
      writeFileSync(HOLD_FILE, '');
      const impatient = await api.stack.addApi({ SEND_WAIT_MS: '500' });
      const send = ({ url }: { url: string }) => {
        const params = { id: 'task-9', message: message('count 2') };
        const body = { jsonrpc: '2.0', id: 'task-9', method: 'tasks/send', params };
        const headers = { Host: `pacer.${HOST}`, 'content-type': 'application/json' };
        return exchange(url, { method: 'POST', path: '/', headers, body });
      };
      let first = await send(impatient);
      // A busy machine has not even begun when the time is over. The very message again joins the task.
      while (first.json.result.status.state === 'submitted') first = await send(impatient);
      expect(first.json.result).toMatchObject({ id: 'task-9', status: { state: 'working' } });
      const waiting = send(api);
      await gaugeBecomes(api.stack.apis[0]!.managementUrl, 'baton_task_watches', 1);
      rmSync(HOLD_FILE);
      const again = await waiting;
      await impatient.kill();
      expect(again.json.result).toMatchObject({ status: { state: 'completed' } });
      expect(again.json.result.artifacts).toMatchObject([{ parts: [{ text: '1 2 ' }] }]);
    });

    describe('who may call the root', () => {
      const statusOf = async (headers: Headers) => (await post('who', message('hi'), headers)).status;

      it('is each caller with a token, or at the name of a public host', async () => {
        const authorization = `Bearer ${api.tenant.token}`;
        expect(await statusOf({ Host: 'unbound.example', authorization })).toBe(200);
        expect(await statusOf({ Host: PRIVATE, authorization })).toBe(200);
        expect(await statusOf({ Host: `${HOST.toUpperCase()}:8080` })).toBe(200);
      });

      it('exists at its public host alone', async () => {
        for (const host of ['unbound.example', PRIVATE]) {
          const answer = await post('who', message('hi'), { Host: host });
          expect([answer.status, answer.headers['www-authenticate']]).toEqual([
            401,
            expect.stringMatching(/^Bearer/),
          ]);
        }
        expect(await statusOf({ authorization: 'Bearer nonsense' })).toBe(401);
        expect(await statusOf({ Host: PRIVATE, ...api.stranger })).not.toBe(200);
      });
    });

    /** Society has no cancel: its operator cancels the task as soon as it is at work. */
    async function cancelWhenAtWork(agent: string): Promise<Answer> {
      const headers = { authorization: `Bearer ${api.tenant.token}` };
      const call = (method: string, params: object) =>
        api.post(`/agents/${agent}`, { jsonrpc: '2.0', id: 1, method, params }, headers);
      for (;;) {
        const { tasks } = (await call('ListTasks', { status: 'TASK_STATE_WORKING' })).json.result;
        if (tasks.length > 0) return call('CancelTask', { id: tasks[0].id });
      }
    }
  },
);
