import type { Contract } from '../support/contract.js';
import type { Answer, SseRecord, Wired } from '../support/wire.js';
import { arbiterClient } from './arbiter-client.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

const results = ({ records }: Answer): Wired[] => records.map(({ data }) => data.result);
const artifacts = (answer: Answer): Wired[] => results(answer).flatMap(({ artifact }) => artifact ?? []);
const marked = (answer: Answer, kind: string): Wired =>
  artifacts(answer).find(({ metadata }) => metadata?.[`x-arbiter.${kind}`] !== undefined);

/** The lines about streams, cancels and Arbiter's native endpoints. */
export function describeArbiterStreams(api: Contract): void {
  const { call, send, atWork, message } = arbiterClient(api);
  const stream = (text: string, metadata?: object) =>
    call('message/stream', { message: message(text, { metadata }) });
  const tell = () => call('message/stream', { message: message('go') }, { agent: 'teller' });
  const post = (path: string) => api.post(path, '', { 'content-type': undefined });
  const cancel = (id: string) => call('tasks/cancel', { id }, { agent: 'stubborn' });

  it('A-26 `message/stream` is `text/event-stream` of `event: message` and one envelope each', async () => {
    const answer = await stream('hello');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^text\/event-stream/);
    for (const { event, data } of answer.records) {
      expect(event).toBe('message');
      expect(data).toMatchObject({ jsonrpc: '2.0', id: 1, result: {} });
    }
  });

  it('A-27 the first frame is `working`, not final, with both ids', async () => {
    const [first] = results(await stream('hello'));
    expect(first).toMatchObject({
      kind: 'status-update',
      taskId: expect.any(String),
      contextId: 'c-42',
      status: { state: 'working' },
      final: false,
    });
  });

  it('A-28 text is `<taskId>-text-0` named `response`, appended from the second chunk on', async () => {
    const answer = await stream('ab', { echo: { chunks: 3 } });
    const { taskId } = results(answer)[0];
    const texts = results(answer).filter(({ artifact }) => artifact);
    for (const { artifact } of texts) {
      expect(artifact).toMatchObject({ artifactId: `${taskId}-text-0`, name: 'response' });
    }
    expect(texts.map(({ append }) => append)).toEqual([false, true, true, true]);
    expect(texts.map(({ artifact }) => artifact.parts[0].text).join('')).toBe('ababab');
    api.expectGolden('message-stream', answer);
  });

  it('A-29 the last frame is the terminal status with the message, `final: true`', async () => {
    const all = results(await stream('hello'));
    const { taskId, ...last } = all.at(-1);
    expect(last).toMatchObject({
      kind: 'status-update',
      status: { state: 'completed', message: { messageId: `${taskId}-r`, role: 'agent' } },
      final: true,
    });
    expect(all.filter(({ final }) => final)).toHaveLength(1);
  });

  it('A-30 a tool call, a file, a delegated reply and anything else are artifacts of their own', async () => {
    const answer = await tell();
    expect(marked(answer, 'tool_call').parts).toEqual([{ kind: 'data', data: { tool: 'search', ok: true } }]);
    const file = artifacts(answer).find(({ parts }) => parts[0].kind === 'file');
    expect(file).toMatchObject({ name: 'table.csv', parts: [{ file: { bytes: 'YSxiCg==' } }] });
    expect(artifacts(answer).map(({ parts }) => parts[0].data)).toContainEqual({
      agent: 'helper',
      depth: 1,
      content: 'a secret of the helper',
    });
    expect(marked(answer, 'plan').parts).toEqual([{ kind: 'data', data: { steps: 2 } }]);
    api.expectGolden('everything', answer);
  });

  it('A-31 one last text frame with `lastChunk: true` comes before the terminal status', async () => {
    const all = results(await stream('hello'));
    expect(all.at(-2)).toMatchObject({
      kind: 'artifact-update',
      artifact: { name: 'response' },
      lastChunk: true,
    });
    expect(all.filter(({ lastChunk }) => lastChunk)).toHaveLength(1);
  });

  it('A-32 a delegated agent’s text is never streamed as text', async () => {
    const answer = await tell();
    const texts = artifacts(answer).flatMap(({ parts }) => parts.map(({ text }: Wired) => text ?? ''));
    expect(texts.join('')).toBe('hello world');
    expect(results(answer).at(-1).status.message.parts).toEqual([{ kind: 'text', text: 'hello world' }]);
  });

  it('A-36 `tasks/cancel` returns the canceled task and stops the run', async () => {
    const seen = await atWork(async (id) => {
      const answer = await cancel(id);
      expect(answer.json.result).toMatchObject({ kind: 'task', id, status: { state: 'canceled' } });
    });
    expect(results(seen).at(-1)).toMatchObject({ status: { state: 'canceled' }, final: true });
  });

  it('A-37 `canceled` stays, whatever the run does afterwards', async () => {
    let task = '';
    await atWork(async (id) => {
      await cancel((task = id));
    });
    // The agent has answered its cancel with more text and `completed`.
    await send('another run on the same worker', {}, { agent: 'teller' });
    const { result } = (await call('tasks/get', { id: task }, { agent: 'stubborn' })).json;
    expect(result.status.state).toBe('canceled');
    expect(JSON.stringify(result)).not.toContain('hello hello');
  });

  it('A-38 canceling a terminal task is -32002, an unknown one -32001', async () => {
    const { id } = (await send('hi')).json.result;
    expect((await call('tasks/cancel', { id })).json.error.code).toBe(-32002);
    expect((await call('tasks/cancel', { id: UNKNOWN })).json.error.code).toBe(-32001);
    expect((await call('tasks/cancel', { id }, { headers: api.stranger })).json.error.code).toBe(-32001);
  });

  it('A-39 `POST /v1/requests/{id}/cancel` does the same', async () => {
    await atWork(async (id) => {
      const answer = await post(`/v1/requests/${id}/cancel`);
      expect([answer.status, answer.json]).toEqual([200, { request_id: id, cancelled: true }]);
      const { result } = (await call('tasks/get', { id }, { agent: 'stubborn' })).json;
      expect(result.status.state).toBe('canceled');
    });
    const { id } = (await send('hi')).json.result;
    const foreign = await api.post(`/v1/requests/${id}/cancel`, '', api.stranger);
    for (const answer of [await post(`/v1/requests/${id}/cancel`), foreign]) {
      const refusal = { request_id: id, cancelled: false, reason: expect.any(String) };
      expect([answer.status, answer.json]).toEqual([404, refusal]);
    }
    const unknown = await post(`/v1/requests/${UNKNOWN}/cancel`);
    expect([unknown.status, unknown.json.request_id, unknown.json.cancelled]).toEqual([404, UNKNOWN, false]);
  });

  it('A-40 an open stream ends with `canceled`, final, after either cancel', async () => {
    const ends = [
      await atWork(async (id) => void (await cancel(id))),
      await atWork(async (id) => void (await post(`/v1/requests/${id}/cancel`))),
    ];
    for (const answer of ends) {
      expect(results(answer).at(-1)).toMatchObject({ status: { state: 'canceled' }, final: true });
    }
    api.expectGolden('canceled-stream', ends[0]!);
  });

  it('A-41 `tasks/resubscribe` replays the stored log, then continues live to the end', async () => {
    let again: Promise<Answer> | undefined;
    const first = await atWork(async (id) => {
      await new Promise<void>((live) => {
        const watch = async ({ data }: SseRecord) => void (data.result.artifact && live());
        again = call('tasks/resubscribe', { id }, { agent: 'stubborn', watch });
      });
      await cancel(id);
    });
    const [opening, ...rest] = results((await again)!);
    expect(opening).toMatchObject({ kind: 'status-update', status: { state: 'working' }, final: false });
    expect(rest).toEqual(results(first).slice(1));
  });

  it('A-43 `tasks/resubscribe` to a terminal task sends exactly one final status', async () => {
    const { id } = (await send('hello')).json.result;
    const answer = await call('tasks/resubscribe', { id });
    expect(results(answer)).toMatchObject([
      { kind: 'status-update', taskId: id, status: { state: 'completed' }, final: true },
    ]);
    api.expectGolden('resubscribe-terminal', answer);
  });

  it('A-44 `/v1/requests` lists the same tasks and returns each of them with its events', async () => {
    const { id } = (await send('hello', { contextId: 'c-native' })).json.result;
    expect((await api.get('/v1/requests')).text).toContain(id);
    const one = await api.get(`/v1/requests/${id}`);
    expect([one.status, one.json.request_id]).toEqual([200, id]);
    const whole = await api.get(`/v1/requests/${id}/events?since_seq=0`);
    expect(whole.headers['content-type']).toMatch(/^text\/event-stream/);
    expect(whole.records.map((record) => Number(record.id))).toEqual([1, 2, 3, 4]);
    const rest = await api.get(`/v1/requests/${id}/events?since_seq=2`);
    expect(rest.records).toEqual(whole.records.slice(2));
    expect((await api.get('/v1/requests', api.stranger)).text).not.toContain(id);
    for (const path of [`/v1/requests/${id}`, `/v1/requests/${id}/events`]) {
      expect((await api.get(path, api.stranger)).status).toBe(404);
      expect((await api.get(path, { authorization: undefined })).status).toBe(401);
    }
  });
}
