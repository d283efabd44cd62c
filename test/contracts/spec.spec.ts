import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import { describeContract } from '../support/contract.js';
import type { Answer, Wired } from '../support/wire.js';
import { specClient } from './spec-client.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const EXTENSION = 'https://example.com/extensions/citations';
const ASKING = { metadata: { echo: { askInput: true } } };
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** The agent `pacer` holds its breath as long as there is this file. */
const HOLD_FILE = join(mkdtempSync(join(tmpdir(), 'baton-spec-')), 'hold');
const env = { CARD_SIGNING_KEY: JSON.stringify(privateKey.export({ format: 'jwk' })), HOLD_FILE };

describeContract(
  'spec',
  {
    env,
    prepare: (api) => api.createAgent('strict', { extensions: [{ uri: EXTENSION, required: true }] }),
  },
  (api) => {
    const { path, v1, v03, message, legacyMessage, send, legacySend } = specClient(api);
    const taskOf = (answer: Answer): Wired => answer.json.result.task;
    const ended = async () => taskOf(await send('hi')).id as string;
    const states = ({ records }: Answer) => records.map(({ data }) => data.result);
    afterAll(() => rmSync(dirname(HOLD_FILE), { recursive: true }));

    it('P-1 every method of 1.0 is available', async () => {
      const { id } = taskOf(await send('hi'));
      const streamed = await v1('SendStreamingMessage', { message: message('hi') });
      expect(streamed.records.at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
      expect((await v1('GetTask', { id })).json.result.id).toBe(id);
      expect((await v1('ListTasks', {})).json.result.tasks[0].id).toMatch(/./);
      expect((await v1('CancelTask', { id })).json.error.code).toBe(-32002);
      expect((await v1('SubscribeToTask', { id })).json.error.code).toBe(-32004);
      // The card has `extendedAgentCard: false` (A2A 1.0 §3.3.4).
      expect((await v1('GetExtendedAgentCard', {})).json.error.code).toBe(-32004);
      const push = { taskId: id, id: 'c', url: 'https://example.com/hook' };
      for (const method of ['Create', 'Get', 'Delete'].map((verb) => `${verb}TaskPushNotificationConfig`)) {
        expect((await v1(method, push)).json.error.code).toBe(-32003);
      }
      expect((await v1('ListTaskPushNotificationConfigs', { taskId: id })).json.error.code).toBe(-32003);
      api.expectGolden('SendMessage', await send('hi'));
      api.expectGolden('SendStreamingMessage', streamed);
    });

    it('P-2 every method of 0.3 is available', async () => {
      const sent = await legacySend('hi');
      const { id } = sent.json.result;
      const streamed = await v03('message/stream', { message: legacyMessage('hi') });
      expect(streamed.records.at(-1)!.data.result.status.state).toBe('completed');
      expect((await v03('tasks/get', { id })).json.result).toMatchObject({ kind: 'task', id });
      expect((await v03('tasks/cancel', { id })).json.error.code).toBe(-32002);
      expect((await v03('tasks/resubscribe', { id })).records).toHaveLength(1);
      expect((await v03('agent/getAuthenticatedExtendedCard', {})).json.error.code).toBe(-32007);
      const push = { taskId: id, pushNotificationConfig: { url: 'https://example.com/hook' } };
      expect((await v03('tasks/pushNotificationConfig/set', push)).json.error.code).toBe(-32003);
      for (const verb of ['get', 'list', 'delete']) {
        const answer = await v03(`tasks/pushNotificationConfig/${verb}`, {
          id,
          pushNotificationConfigId: 'c',
        });
        expect(answer.json.error.code).toBe(-32003);
      }
      api.expectGolden('message-send', sent);
      api.expectGolden('message-stream', streamed);
    });

    it('P-3 `A2A-Version` may be absent, empty, 0.3 or 1.0, in header or query; anything else is -32009', async () => {
      const params = { message: legacyMessage('hi') };
      for (const version of [undefined, '', '0.3', '0.3.0']) {
        const answer = await v03('message/send', params, { headers: { 'A2A-Version': version } });
        expect(answer.json.result.kind).toBe('task');
      }
      for (const version of [undefined, '1.0', '1.0.3']) {
        expect(taskOf(await send('hi', {}, {}, { headers: { 'A2A-Version': version } })).id).toMatch(/./);
      }
      const refused = await send('hi', {}, {}, { headers: { 'A2A-Version': '2.0' } });
      expect(refused.json).toMatchObject({ id: 1, error: { code: -32009 } });
      expect(refused.text).toMatch(/0\.3.*1\.0/);
      const body = { jsonrpc: '2.0', id: 1, method: 'message/send', params };
      expect((await api.post(`${path()}?A2A-Version=2.0`, body)).json.error.code).toBe(-32009);
      expect((await api.post(`${path()}?A2A-Version=0.3`, body)).json.result.kind).toBe('task');
      api.expectGolden('version', refused);
    });

    it('answers a send with the task that GetTask then shows, however its turn went', async () => {
      const echo = (options: object) => ({ metadata: { echo: options } });
      const file = {
        raw: Buffer.from('bytes').toString('base64'),
        filename: 'a.bin',
        mediaType: 'image/png',
      };
      const parts = [{ text: 'a\u0000b' }, { data: { n: 1.5, deep: [null, { x: '\u{1f600}' }] } }, file];
      const sends: [agent: string, more: object][] = [
        ...['teller', 'recall', 'forger', 'echo'].map((agent): [string, object] => [agent, {}]),
        ...[{ chunks: 3 }, { fail: 'failed' }, { askInput: true }].map((options): [string, object] => [
          'echo',
          echo(options),
        ]),
        ['echo', { parts }],
        ['echo', { ...echo({ chunks: 400, chunkBytes: 1024 }), metadata: { echo: { chunks: 400 }, own: 1 } }],
      ];
      for (const [agent, more] of sends) {
        const params = { metadata: { asked: true, list: [1, null] } };
        const answer = await send('hi', more, params, { agent });
        expect([agent, more, answer.json.error]).toEqual([agent, more, undefined]);
        const { task } = answer.json.result;
        if (!task) continue; // A bare message has no task.
        expect((await v1('GetTask', { id: task.id }, { agent })).json.result).toEqual(task);
        const last = (await send('hi', more, { configuration: { historyLength: 1 } }, { agent })).json.result
          .task;
        expect(last.history).toHaveLength(1);
      }
    });

    it('P-4 a send waits until the turn ends, unless the caller asks it not to', async () => {
      const slow = { metadata: { echo: { chunks: 2, delayMs: 100 } } };
      expect(taskOf(await send('hi', slow)).status.state).toBe('TASK_STATE_COMPLETED');
      expect(taskOf(await send('hi', ASKING)).status.state).toBe('TASK_STATE_INPUT_REQUIRED');
      const endless = { metadata: { echo: { delayMs: 600_000 } } };
      const atOnce = taskOf(await send('hi', endless, { configuration: { returnImmediately: true } }));
      expect(atOnce.status.state).toMatch(/SUBMITTED|WORKING/);
      const legacy = await legacySend('hi', endless, { configuration: { blocking: false } });
      expect(legacy.json.result.status.state).toMatch(/submitted|working/);
    });

    it('P-5 a stream begins with the task at a sequence, and `Last-Event-ID` resumes after a sequence', async () => {
      // It sends its first chunk and continues when the late callers are there.
      writeFileSync(HOLD_FILE, '');
      const waiting = new Set(['late', 'legacy']);
      const comes = (who: string) => async () => {
        if (waiting.delete(who) && waiting.size === 0) rmSync(HOLD_FILE);
      };
      let late: Promise<Answer> | undefined;
      let legacy: Promise<Answer> | undefined;
      const whole = await v1(
        'SendStreamingMessage',
        { message: message('count 3') },
        {
          agent: 'pacer',
          watch: async ({ data, id }) => {
            const taskId = data.result.artifactUpdate?.taskId;
            if (id !== '3') return;
            late = v1('SubscribeToTask', { id: taskId }, { agent: 'pacer', watch: comes('late') });
            legacy = v03('tasks/resubscribe', { id: taskId }, { agent: 'pacer', watch: comes('legacy') });
          },
        },
      );
      const idsOf = ({ records }: Answer) => records.map(({ id }) => Number(id));
      expect(idsOf(whole)).toEqual([1, 2, 3, 4, 5, 6]);
      const { task } = states(whole)[0];
      expect(task.status.state).toBe('TASK_STATE_SUBMITTED');
      const [snapshot, ...rest] = (await late!).records;
      expect(snapshot!.data.result.task.id).toBe(task.id);
      expect(Number(snapshot!.id)).toBeGreaterThanOrEqual(3);
      expect(rest).toEqual(whole.records.slice(Number(snapshot!.id)));
      expect(states(await legacy!)[0]).toMatchObject({ kind: 'task', id: task.id });
      const resume = (method: typeof v1, name: string) =>
        method(name, { id: task.id }, { agent: 'pacer', headers: { 'Last-Event-ID': '4' } });
      expect((await resume(v1, 'SubscribeToTask')).records).toEqual(whole.records.slice(4));
      expect(idsOf(await resume(v03, 'tasks/resubscribe'))).toEqual([5, 6]);
      const terminal = await v1('SubscribeToTask', { id: task.id }, { agent: 'pacer' });
      expect(terminal.headers['content-type']).toMatch(/^application\/json/);
      expect(terminal.json.error.code).toBe(-32004);
      expect(states(await v03('tasks/resubscribe', { id: task.id }, { agent: 'pacer' }))).toMatchObject([
        { kind: 'status-update', status: { state: 'completed' }, final: true },
      ]);
    });

    it('P-6 0.3 frames carry `kind` and `final`', async () => {
      const frames = states(await v03('message/stream', { message: legacyMessage('hi') }));
      expect(frames.map(({ kind, final }) => [kind, final])).toEqual([
        ['task', undefined],
        ['status-update', false],
        ['artifact-update', undefined],
        ['status-update', true],
      ]);
    });

    it('P-7 `historyLength`: unset is all, 0 none, n the last n', async () => {
      const { id } = taskOf(await send('ask', ASKING));
      const historyOf = async (historyLength?: number) =>
        (await v1('GetTask', { id, historyLength })).json.result.history;
      expect(await historyOf()).toHaveLength(2);
      expect(await historyOf(0)).toBeUndefined();
      expect(await historyOf(1)).toMatchObject([{ role: 'ROLE_AGENT' }]);
      expect(taskOf(await send('hi', {}, { configuration: { historyLength: 0 } })).history).toBeUndefined();
    });

    it('P-8 `ListTasks` has newest status first, opaque page tokens, filters and no artifacts', async () => {
      const contextId = 'c-list';
      const ids: string[] = [];
      for (const text of ['one', 'two', 'three']) ids.unshift(taskOf(await send(text, { contextId })).id);
      const list = async (params: object) => (await v1('ListTasks', { contextId, ...params })).json.result;
      const all = await list({});
      expect(all.tasks.map(({ id }: Wired) => id)).toEqual(ids);
      expect(all).toMatchObject({ nextPageToken: '', totalSize: 3, pageSize: 50 });
      expect(all.tasks[0]).not.toHaveProperty('artifacts');
      const first = await list({ pageSize: 2, includeArtifacts: true });
      expect(first.tasks[0].artifacts).toMatchObject([{ parts: [{ text: 'three' }] }]);
      const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
      expect([...first.tasks, ...second.tasks].map(({ id }: Wired) => id)).toEqual(ids);
      expect(second.nextPageToken).toBe('');
      expect((await list({ status: 'TASK_STATE_WORKING' })).tasks).toEqual([]);
      const after = all.tasks[0].status.timestamp as string;
      expect((await list({ statusTimestampAfter: after })).tasks.length).toBeLessThan(3);
      for (const params of [{ pageSize: 0 }, { pageSize: 101 }, { pageToken: 'nonsense' }]) {
        expect((await v1('ListTasks', params)).json.error.code).toBe(-32602);
      }
    });

    it('P-9 a message with `taskId` continues that task if it can', async () => {
      const codeOf = async (more: object) => (await send('hi', more)).json.error?.code;
      expect(await codeOf({ taskId: UNKNOWN })).toBe(-32001);
      expect(await codeOf({ taskId: await ended() })).toBe(-32004);
      const asked = taskOf(await send('ask', ASKING));
      expect(await codeOf({ taskId: asked.id, contextId: 'another' })).toBe(-32602);
      const answered = taskOf(await send('answer', { taskId: asked.id }));
      expect(answered).toMatchObject({ id: asked.id, contextId: asked.contextId });
      expect(answered.artifacts).toMatchObject([{ parts: [{ text: 'answer' }] }]);
    });

    it('P-10 errors carry `ErrorInfo`, validation errors `BadRequest` with `fieldViolations`', async () => {
      const missing = await v1('GetTask', { id: UNKNOWN });
      expect(missing.json.error.data).toEqual([
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'TASK_NOT_FOUND',
          domain: 'a2a-protocol.org',
          metadata: expect.any(Object),
        },
      ]);
      const invalid = await v1('SendMessage', { message: message('hi', { messageId: undefined }) });
      expect(invalid.json.error.data).toContainEqual({
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: expect.stringContaining('messageId'), description: expect.any(String) }],
      });
      api.expectGolden('unknown-task', missing);
      api.expectGolden('invalid-params', invalid);
    });

    it('P-11 cards list every interface, can be cached, are signed, and fit the version asked for', async () => {
      const url = `${path()}/.well-known/agent-card.json`;
      const v1Card = await api.get(url, { 'A2A-Version': '1.0' });
      const interfaces = v1Card.json.supportedInterfaces as Wired[];
      expect(
        interfaces.map(({ protocolBinding, protocolVersion }) => [protocolBinding, protocolVersion]),
      ).toEqual(
        expect.arrayContaining([
          ['JSONRPC', '1.0'],
          ['JSONRPC', '0.3'],
        ]),
      );
      for (const name of ['url', 'preferredTransport', 'protocolVersion'])
        expect(v1Card.json).not.toHaveProperty(name);
      expect(v1Card.headers['cache-control']).toMatch(/max-age=\d+/);
      const { etag } = v1Card.headers;
      const cached = await api.get(url, { 'A2A-Version': '1.0', 'If-None-Match': etag });
      expect([cached.status, cached.text]).toEqual([304, '']);
      const verify = verifyAgentCardSignature(() => Promise.resolve(createPublicKey(privateKey) as never));
      await verify(v1Card.json);
      await expect(verify({ ...v1Card.json, name: 'Another' })).rejects.toThrow();
      const both = await api.get(url);
      expect(both.json).toMatchObject({
        supportedInterfaces: interfaces,
        url: expect.stringMatching(/\/agents\/echo$/),
        preferredTransport: 'JSONRPC',
        protocolVersion: expect.stringMatching(/^0\.3/),
        // What a client of 0.3 can use: one with HTTP+JSON alone finds it here.
        additionalInterfaces: [{ transport: 'JSONRPC' }, { transport: 'HTTP+JSON' }],
      });
      const flat = await api.get(`${path()}/.well-known/agent.json`);
      expect(flat.json).toMatchObject({
        name: 'Echo',
        url: both.json.url,
        capabilities: { streaming: true },
      });
    });

    it('P-13 extensions are negotiated and echoed, a required one that is missing is -32008', async () => {
      const agent = 'strict';
      const missing = await send('hi', {}, {}, { agent });
      expect(missing.json.error.code).toBe(-32008);
      expect(missing.text).toContain(EXTENSION);
      const headers = { 'A2A-Extensions': `https://example.com/other, ${EXTENSION}` };
      const answer = await send('hi', {}, {}, { agent, headers });
      expect(taskOf(answer).status.state).toBe('TASK_STATE_COMPLETED');
      expect(answer.headers['a2a-extensions']).toBe(EXTENSION);
      api.expectGolden('extension-required', missing);
    });

    it('P-14 timestamps are UTC with milliseconds and `Z`', async () => {
      const answers = [await send('hi'), await legacySend('hi'), await v1('ListTasks', { pageSize: 1 })];
      for (const { text } of answers) {
        const times = [...text.matchAll(/"timestamp":"([^"]*)"/g)].map(([, time]) => time);
        expect(times.length).toBeGreaterThan(0);
        for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      }
    });
  },
);
