import { type IncomingMessage, request as httpRequest } from 'node:http';
import { ProtocolError, type StreamItem, TaskState } from '@baton/a2a';
import { agentOf, type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { request, sampleTask, statusItem, taskItem } from '../../../../test/support/api/samples.js';

const HEARTBEAT_MS = 20;

let api: FakeApi;

beforeEach(async () => {
  api = await startFakeApi({ SSE_HEARTBEAT_MS: String(HEARTBEAT_MS) });
});
afterEach(() => api.close());

/** Makes `SendStreamingMessage` and `SubscribeToTask` yield what the generator yields. */
function serve(source: (signal: AbortSignal) => AsyncGenerator<StreamItem[]>): AbortSignal[] {
  const signals: AbortSignal[] = [];
  const run = (_call: unknown, _request: unknown, signal: AbortSignal) => {
    signals.push(signal);
    return source(signal);
  };
  Object.assign(api.operations, { sendStreamingMessage: run, subscribeToTask: run });
  return signals;
}

async function* whole(): AsyncGenerator<StreamItem[]> {
  yield [taskItem()];
  yield [statusItem(2, TaskState.TASK_STATE_WORKING)];
  yield [statusItem(3, TaskState.TASK_STATE_COMPLETED)];
}

/** The task, and then nothing until the signal aborts. */
async function* open(signal: AbortSignal): AsyncGenerator<StreamItem[]> {
  yield [taskItem(7)];
  await aborted(signal);
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Reads until the text matches, and leaves the stream open. */
function reader(response: Response) {
  const source = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async until(pattern: RegExp): Promise<string> {
      while (!pattern.test(text)) {
        const { value, done } = await source.read();
        if (done) throw new Error(`the stream ended before ${String(pattern)}: ${text}`);
        text += value;
      }
      return text;
    },
    async rest(): Promise<string> {
      for (let next = await source.read(); !next.done; next = await source.read()) text += next.value;
      return text;
    },
    leave: () => source.cancel(),
  };
}

const HEADERS = { authorization: 'Bearer caller', 'content-type': 'application/json' };

describe('a stream', () => {
  it('keeps no message of its caller while it is open', async () => {
    const parse = jest.spyOn(JSON, 'parse');
    serve(open);
    const stream = reader(await api.rpc(request.stream));
    await stream.until(/id: 7/);
    const bodies = parse.mock.results
      .map(({ value }) => value as { method?: string; params: { message?: unknown } } | undefined)
      .filter((body) => body?.method === request.stream.method);
    parse.mockRestore();
    expect(bodies.map((body) => body?.params.message)).toEqual([undefined]);
    await stream.leave();
  });

  it('is server-sent events: each frame an envelope with the caller’s id, under its sequence', async () => {
    serve(whole);
    const response = await api.rpc(request.stream, { 'x-request-id': 'r-1' });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-request-id': 'r-1',
    });
    const frames = (await response.text()).split('\n\n').slice(0, -1);
    expect(frames.map((frame) => frame.split('\n')[0])).toEqual(['id: 1', 'id: 2', 'id: 3']);
    const data = frames.map((frame) => JSON.parse(frame.split('\ndata: ')[1]!) as Record<string, unknown>);
    expect(data.map(({ id }) => id)).toEqual(['s', 's', 's']);
    expect(data[0]).toMatchObject({ jsonrpc: '2.0', result: { task: { id: 'task-1' } } });
    expect(data[2]).toMatchObject({
      result: { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
    });
  });

  it('carries the extensions that are active', async () => {
    const extension = { uri: 'urn:a', required: true, description: '', params: undefined };
    api.agents.push(agentOf({ extensions: [extension] }, 'extended'));
    serve(whole);
    const response = await api.rpc(request.stream, { 'a2a-extensions': 'urn:a' }, '/agents/extended');
    expect(response.headers.get('a2a-extensions')).toBe('urn:a');
    await response.text();
  });

  it('is refused as a plain JSON answer when it fails before its first item', async () => {
    serve(async function* () {
      throw ProtocolError.taskNotFound('task-1');
      yield [taskItem()];
    });
    const response = await api.rpc(request.subscribe);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toMatchObject({ id: 3, error: { code: -32001 } });
  });

  describe('that fails before its first item', () => {
    const STREAMS = { accept: 'text/event-stream' };
    const resubscribe = { jsonrpc: '2.0', id: 9, method: 'tasks/resubscribe', params: { id: 'task-1' } };
    const refuse = () =>
      serve(async function* () {
        throw ProtocolError.taskNotFound('task-1');
        yield [taskItem()];
      });
    const typeOf = (response: Response) => response.headers.get('content-type')!.split(';')[0];
    const framed = async (body: object) => {
      const response = await api.rpc(body, STREAMS);
      const text = await response.text();
      expect([response.status, typeOf(response), response.headers.get('cache-control')]).toEqual([
        200,
        'text/event-stream',
        'no-cache',
      ]);
      expect(text).toMatch(/^data: .*\n\n$/);
      return JSON.parse(text.slice('data: '.length)) as Record<string, unknown>;
    };

    it('is one frame with the error for callers of 0.3 that read nothing else', async () => {
      refuse();
      expect(await framed(resubscribe)).toMatchObject({ jsonrpc: '2.0', id: 9, error: { code: -32001 } });
      const empty = { ...resubscribe, method: 'message/stream', params: {} };
      expect(await framed(empty)).toMatchObject({ id: 9, error: { code: -32602 } });
    });

    it.each<[string, object, Record<string, string>]>([
      ['1.0', request.subscribe, STREAMS],
      ['0.3 that read JSON as well', resubscribe, { accept: 'application/json, text/event-stream' }],
      ['0.3 that name no type', resubscribe, {}],
      ['0.3 that refuse streams', resubscribe, { accept: 'text/event-stream;q=0' }],
    ])('is plain JSON for callers of %s', async (_who, body, headers) => {
      refuse();
      const response = await api.rpc(body, headers);
      expect([response.status, typeOf(response)]).toEqual([200, 'application/json']);
      expect(await response.json()).toMatchObject({ error: { code: -32001 } });
    });

    it('keeps the HTTP status of an error that has one', async () => {
      const response = await api.rpc(resubscribe, STREAMS, '/agents/nobody');
      expect([response.status, typeOf(response)]).toEqual([404, 'application/json']);
      expect((await api.rpc(resubscribe, { ...STREAMS, authorization: '' })).status).toBe(401);
    });

    it('is plain JSON where no stream was asked for', async () => {
      const get = { ...resubscribe, method: 'tasks/get', params: {} };
      expect(typeOf(await api.rpc(get, STREAMS))).toBe('application/json');
    });
  });

  it('ends with a frame that has the error of the middle, without internal data', async () => {
    serve(async function* () {
      yield [taskItem()];
      throw new Error('connection to 10.0.0.3 lost');
    });
    const text = await (await api.rpc(request.stream)).text();
    const last = text.trim().split('\n\n').at(-1)!;
    expect(last).not.toContain('id:');
    expect(JSON.parse(last.replace('data: ', ''))).toMatchObject({ id: 's', error: { code: -32603 } });
    expect(text).not.toContain('10.0.0.3');
  });

  it('opens without an item when nothing is new, and beats', async () => {
    serve(async function* (signal) {
      await aborted(signal);
    });
    const response = await api.rpc(request.subscribe, { 'last-event-id': '4' });
    const stream = reader(response);
    expect(await stream.until(/(: heartbeat\n){2}/)).toMatch(/^(: heartbeat\n)+$/);
    await stream.leave();
  });

  it('passes the resume position to the operation', async () => {
    const seen: unknown[] = [];
    api.operations.subscribeToTask = async function* (call) {
      seen.push(call.lastEventId);
      yield [taskItem()];
    };
    await (await api.rpc(request.subscribe, { 'last-event-id': '41' })).text();
    await (await api.rpc(request.subscribe)).text();
    expect(seen).toEqual([41, undefined]);
  });

  it('ends its source when the caller leaves', async () => {
    const signals = serve(open);
    const stream = reader(await api.rpc(request.stream));
    await stream.until(/id: 7/);
    await stream.leave();
    await aborted(signals[0]!);
    while (!api.log.some(({ stream: end }) => end === 'caller-left')) await new Promise(setImmediate);
  });

  it('closes a reader that stops reading, without holding more for it than the limit', async () => {
    await api.close();
    api = await startFakeApi({ SSE_STALL_MS: '100', SSE_BUFFER_BYTES: '65536' });
    let produced = 0;
    const big = sampleTask({ metadata: { filler: 'x'.repeat(50_000) } });
    const signals = serve(async function* (signal) {
      while (!signal.aborted) yield [{ sequence: (produced += 1), payload: { $case: 'task', value: big } }];
    });
    const upload = httpRequest(`${api.url}/agents/echo`, { method: 'POST', headers: HEADERS });
    const response = await new Promise<IncomingMessage>((resolve) => {
      upload.on('response', resolve).end(JSON.stringify(request.stream));
    });
    await new Promise((resolve) => response.once('readable', resolve));
    await aborted(signals[0]!);
    response.destroy();
    while (!api.log.some(({ stream: end }) => end === 'fell-behind')) await new Promise(setImmediate);
    // What the kernel takes on both sides is not ours to limit; without a limit it would be far more.
    expect(produced).toBeLessThan(2_000);
  });

  it('ends its source when the caller leaves before the first item', async () => {
    const signals = serve(async function* (signal) {
      await aborted(signal);
    });
    const leaving = new AbortController();
    const call = fetch(`${api.url}/agents/echo`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify(request.stream),
      signal: leaving.signal,
    });
    while (signals.length === 0) await new Promise(setImmediate);
    leaving.abort();
    await expect(call).rejects.toThrow('aborted');
    await aborted(signals[0]!);
  });

  it('ends without a final event when the server shuts down, so that the caller resumes', async () => {
    serve(open);
    const stream = reader(await api.rpc(request.stream));
    await stream.until(/id: 7/);
    await api.close();
    const text = await stream.rest();
    expect(text).toMatch(/: closed: this server is shutting down; resume with Last-Event-ID: 7\n$/);
    api = await startFakeApi();
  });

  it('ends with an error when its token is revoked, so that the caller resumes with another', async () => {
    const signals = serve(open);
    const stream = reader(await api.rpc(request.stream));
    const other = reader(await api.rpc(request.stream, { authorization: 'Bearer admin' }));
    await Promise.all([stream.until(/id: 7/), other.until(/id: 7/)]);
    api.refused.set('caller', 'revoked');
    api.control({ type: 'token-revoked', tenantId: 'tenant-1', tokenId: 'caller' });
    const [, comment, data] = /(: closed: .*)\ndata: (.*)\n\n$/.exec(await stream.rest()) ?? [];
    expect(comment).toBe(': closed: the token was revoked; use a valid token; resume with Last-Event-ID: 7');
    expect(JSON.parse(data ?? '')).toMatchObject({
      jsonrpc: '2.0',
      id: 's',
      error: { code: -32600, message: 'the token was revoked' },
    });
    while (!api.log.some(({ stream: end }) => end === 'refused')) await new Promise(setImmediate);
    expect(signals.map(({ aborted: isOver }) => isOver)).toEqual([true, false]);
    expect((await api.rpc(request.stream)).status).toBe(401);
    await other.leave();
  });

  it.each([
    ['revoked', 'the token was revoked'],
    ['expired', 'the token has expired'],
    ['unknown', 'the token is not known'],
  ] as const)('ends soon when its token is %s without a control message', async (reason, message) => {
    serve(open);
    const stream = reader(await api.rpc(request.stream));
    await stream.until(/id: 7/);
    api.refused.set('caller', reason);
    const rest = await stream.rest();
    expect(rest).toContain(`"message":"${message}"`);
    // Five seconds, as the process itself counts them.
    expect(rest.match(/^:/gm)?.length).toBeLessThan(5_000 / HEARTBEAT_MS);
  });

  it('ends when its token expires', async () => {
    api.expiresAt.caller = new Date(Date.now() + 300);
    serve(open);
    const stream = reader(await api.rpc(request.stream));
    expect(await stream.rest()).toContain('"message":"the token has expired"');
    expect(Date.now()).toBeGreaterThanOrEqual(api.expiresAt.caller.getTime());
  });

  it('of the log of a task has the error in the form of that path', async () => {
    serve(open);
    const id = '0198c0de-0000-7000-8000-000000000000';
    api.agentOfTask[id] = 'echo';
    const headers = { authorization: 'Bearer reader' };
    const stream = reader(await fetch(`${api.url}/v1/tasks/${id}/events`, { headers }));
    await stream.until(/id: 7/);
    api.refused.set('reader', 'revoked');
    expect(await stream.rest()).toMatch(
      /\nevent: error\ndata: {"error":{"status":"UNAUTHENTICATED","message":"the token was revoked"}}\n\n$/,
    );
  });

  it('of a notification is started and answered with 204', async () => {
    const signals = serve(open);
    const { id: _, ...notification } = request.stream;
    const response = await api.rpc(notification);
    expect(response.status).toBe(204);
    expect(signals).toHaveLength(1);
    await aborted(signals[0]!);
  });
});

describe('a blocking call', () => {
  it('stops waiting when its caller leaves', async () => {
    const signals: AbortSignal[] = [];
    api.operations.sendMessage = async (_call, _request, signal) => {
      signals.push(signal);
      await aborted(signal);
      throw new Error('nobody reads this');
    };
    const leaving = new AbortController();
    const call = fetch(`${api.url}/agents/echo`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify(request.send),
      signal: leaving.signal,
    });
    while (signals.length === 0) await new Promise(setImmediate);
    leaving.abort();
    await expect(call).rejects.toThrow('aborted');
    await aborted(signals[0]!);
    while (!api.log.some(({ callerLeft }) => callerLeft)) await new Promise(setImmediate);
    expect(api.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
  it('is answered with an error when its token is revoked', async () => {
    api.operations.sendMessage = async (_call, _request, signal) => {
      api.refused.set('caller', 'revoked');
      api.control({ type: 'token-revoked', tenantId: 'tenant-1', tokenId: 'caller' });
      await aborted(signal);
      return { $case: 'task', value: sampleTask() };
    };
    const response = await api.rpc(request.send);
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer realm="baton"',
    ]);
    expect(await response.json()).toMatchObject({ id: 1, error: { message: 'the token was revoked' } });
  });
});
