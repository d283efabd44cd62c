import { request as httpRequest } from 'node:http';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { legacyRequest, request, sampleTask } from '../../../../test/support/api/samples.js';

const LIMIT = 65_536;
let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi({ BODY_LIMIT_BYTES: String(LIMIT) });
  api.operations.getTask = async (_call, { id }) => sampleTask({ id });
  api.operations.listTasks = async () => ({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
  api.operations.sendMessage = async () => ({ $case: 'task', value: sampleTask() });
});
afterAll(() => api.close());
// Whatever a caller sends, it is the caller's mistake and not a bug of ours.
afterEach(() => expect(api.log.filter(({ level }) => level === 'error')).toEqual([]));

interface Refusal {
  http: number;
  code?: number;
  id: unknown;
  message?: string;
}

async function refusal(response: Response): Promise<Refusal> {
  const { id, error } = (await response.json()) as { id: unknown; error?: { code: number; message: string } };
  return { http: response.status, code: error?.code, id, message: error?.message };
}

const send = (message: unknown) => ({ ...request.send, params: { message } });
const good = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hi' }] };

describe('an invalid request', () => {
  it.each<[string, string | Uint8Array, number, RegExp]>([
    ['no body', '', -32700, /empty/],
    ['no JSON', '{"jsonrpc":', -32700, /not JSON/],
    ['no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), -32700, /UTF-8/],
    ['a batch', '[]', -32600, /batch/],
    ['a number', '7', -32600, /object/],
    ['null', 'null', -32600, /object/],
    ['nothing in it', '{}', -32600, /jsonrpc/],
    ['JSON-RPC 1', '{"jsonrpc":"1.0","method":"GetTask"}', -32600, /jsonrpc/],
    ['no method', '{"jsonrpc":"2.0","id":null}', -32600, /method/],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"GetTask"}', -32600, /id/],
    ['an id that is a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}', -32600, /id/],
    ['an id that is true', '{"jsonrpc":"2.0","id":true,"method":"GetTask"}', -32600, /id/],
    [
      '10,000 levels',
      `{"jsonrpc":"2.0","method":"GetTask","params":${nested(10_000)}}`,
      -32600,
      /nested deeper/,
    ],
    ['__proto__', '{"jsonrpc":"2.0","method":"GetTask","params":{"__proto__":{"a":1}}}', -32600, /__proto__/],
  ])('%s is refused with its reason and id null', async (_what, body, code, message) => {
    const answer = await refusal(await api.rpc(body));
    expect(answer).toEqual({ http: 200, code, id: null, message: expect.stringMatching(message) as unknown });
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'json',
    ';',
  ])('the media type %j is refused', async (type) => {
    const answer = await refusal(await api.rpc(request.get, { 'content-type': type }));
    expect(answer).toMatchObject({ http: 415, code: -32005, id: null });
  });

  it('a charset that is not UTF-8, a body without a type and a compressed body are refused', async () => {
    const headers: Record<string, string>[] = [
      { 'content-type': 'application/json; charset=latin1' },
      { 'content-encoding': 'gzip' },
      { 'content-type': '' },
    ];
    for (const header of headers) {
      expect(await refusal(await api.rpc(request.get, header))).toMatchObject({
        http: 415,
        code: -32005,
        id: null,
      });
    }
  });

  it('a missing body without a type is refused as missing', async () => {
    const response = await fetch(`${api.url}/agents/echo`, {
      method: 'POST',
      headers: { authorization: 'Bearer caller' },
    });
    expect(await refusal(response)).toMatchObject({ http: 200, code: -32700, id: null });
  });

  it.each(['nope', 'message/Send', 'toString', '__proto__', 'sendmessage'])(
    'the method %j is unknown, and the id comes back',
    async (method) => {
      const answer = await refusal(await api.rpc({ ...request.get, method }));
      expect(answer).toMatchObject({ http: 200, code: -32601, id: 2 });
    },
  );
});

describe('size', () => {
  const filled = (bytes: number): string => {
    const empty = JSON.stringify({ ...request.get, params: { id: 'x', metadata: '' } });
    return empty.replace('"metadata":""', `"metadata":"${'a'.repeat(bytes - empty.length)}"`);
  };

  it('a body of exactly the limit is read', async () => {
    expect((await api.rpc(filled(LIMIT))).status).toBe(200);
  });

  it('one byte more is refused, naming the limit', async () => {
    const answer = await refusal(await api.rpc(filled(LIMIT + 1)));
    expect(answer).toMatchObject({ http: 413, code: -32600, id: null });
    expect(answer.message).toContain(`${LIMIT} bytes`);
  });

  it('a tenant with a smaller limit is held to it, and the error names it', async () => {
    api.limits['tenant-1'] = { bodyBytes: LIMIT - 1 };
    try {
      const answer = await refusal(await api.rpc(filled(LIMIT)));
      expect(answer).toMatchObject({ http: 413, code: -32600, id: null });
      expect(answer.message).toContain(`the limit bodyBytes of this tenant, ${LIMIT - 1} bytes`);
      expect((await api.rpc(filled(LIMIT - 1))).status).toBe(200);
      const stranger = { authorization: 'Bearer stranger' };
      expect((await api.rpc(filled(LIMIT), stranger)).status).toBe(200);
    } finally {
      delete api.limits['tenant-1'];
    }
  });

  it('a body of no declared length is cut off at the limit', async () => {
    const answer = await chunked((write) => write('a'.repeat(LIMIT + 1)));
    expect(answer).toMatchObject({ status: 413 });
    expect(JSON.parse(answer.body)).toMatchObject({ id: null, error: { code: -32600 } });
  });

  it('a body many times the limit still gets to read why', async () => {
    const response = await api.rpc('a'.repeat(LIMIT * 12));
    expect(response.status).toBe(413);
    expect((await api.rpc(request.get)).status).toBe(200);
  });

  it('a chunked body within the limit is read', async () => {
    const text = JSON.stringify(request.get);
    const answer = await chunked((write) => {
      write(text.slice(0, 10));
      write(text.slice(10));
    });
    expect(JSON.parse(answer.body)).toMatchObject({ id: 2, result: { id: 'task-1' } });
  });

  it('a caller that waits for leave to send gets it', async () => {
    const answer = await chunked((write) => write(JSON.stringify(request.get)), { expect: '100-continue' });
    expect(answer.status).toBe(200);
  });

  it('a caller that leaves in the middle of its request leaves nothing behind', async () => {
    const upload = httpRequest(`${api.url}/agents/echo`, { method: 'POST', headers: HEADERS });
    upload.on('error', () => undefined);
    await new Promise<void>((resolve) => upload.write('{"jsonrpc"', () => resolve()));
    upload.destroy();
    await logged(({ callerLeft, method }) => callerLeft === true && method === 'POST');
  });
});

describe('params', () => {
  it.each<[string, object, string]>([
    ['no params', { ...request.get, params: undefined }, 'id'],
    ['params of the wrong kind', { ...request.get, params: 7 }, 'params'],
    ['no message', { ...request.send, params: {} }, 'message'],
    ['no parts', send({ ...good, parts: undefined }), 'message.parts'],
    ['empty parts', send({ ...good, parts: [] }), 'message.parts'],
    ['an empty part', send({ ...good, parts: [{}] }), 'message.parts[0].content'],
    ['no messageId', send({ ...good, messageId: undefined }), 'message.messageId'],
    ['an unknown role', send({ ...good, role: 'ROLE_ROBOT' }), 'message.role'],
    ['NUL in an id', { ...request.get, params: { id: 'a\0b' } }, 'id'],
    ['a negative historyLength', { ...request.get, params: { id: 'x', historyLength: -1 } }, 'historyLength'],
    ['a huge historyLength', { ...request.get, params: { id: 'x', historyLength: 1e12 } }, 'historyLength'],
    ['a pageSize of 0', { ...request.list, params: { pageSize: 0 } }, 'pageSize'],
    ['a pageSize of 101', { ...request.list, params: { pageSize: 101 } }, 'pageSize'],
    ['an unknown state', { ...request.list, params: { status: 'TASK_STATE_HAPPY' } }, 'status'],
  ])('%s: refused, naming the field', async (_what, body, field) => {
    const response = await api.rpc(body);
    const { id, error } = (await response.json()) as {
      id: unknown;
      error: { code: number; data: { '@type': string; fieldViolations?: { field: string }[] }[] };
    };
    expect([response.status, error.code, id]).toEqual([200, -32602, (body as { id: unknown }).id]);
    const fields = error.data.flatMap(({ fieldViolations }) => fieldViolations ?? []).map((v) => v.field);
    expect(fields.map((name) => name.replace(/^params\./, ''))).toContain(field);
  });

  it('0.3 names the field as well', async () => {
    const body = { ...legacyRequest.send, params: { message: { messageId: 'm', role: 'user', parts: [] } } };
    const { error } = (await (await api.rpc(body)).json()) as { error: object };
    expect(error).toMatchObject({ code: -32602, data: { fieldViolations: [{ field: 'message.parts' }] } });
  });

  it.each(['-1', '1.5', 'abc', '9'.repeat(30)])('Last-Event-ID %j is refused by name', async (value) => {
    const answer = await refusal(await api.rpc(request.subscribe, { 'last-event-id': value }));
    expect(answer).toMatchObject({
      http: 200,
      code: -32602,
      message: expect.stringContaining('Last-Event-ID') as unknown,
    });
  });

  it.each(['', 'a b', 'one, two', '"open', '"a" "b"', '""', '"a";p=1', 'caf\u00e9', 'k'.repeat(256)])(
    'Idempotency-Key %j of a send is refused by name; where nothing is sent it does not matter',
    async (value) => {
      for (const body of [request.send, request.stream]) {
        expect(await refusal(await api.rpc(body, { 'idempotency-key': value }))).toMatchObject({
          http: 200,
          code: -32602,
          message: expect.stringMatching(/^Idempotency-Key: must be one key of 1 to 255/) as unknown,
        });
      }
      expect((await api.rpc(request.get, { 'idempotency-key': value })).status).toBe(200);
    },
  );

  it.each([
    ['k-1', 'k-1'],
    [' k-1 ', 'k-1'],
    ['"k-1"', 'k-1'],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['k'.repeat(255), 'k'.repeat(255)],
  ])('Idempotency-Key %j of a send is taken', async (value, key) => {
    const { sendMessage } = api.operations;
    const keys: unknown[] = [];
    api.operations.sendMessage = (call, ...rest) => {
      keys.push(call.idempotencyKey);
      return sendMessage!(call, ...rest);
    };
    await api.rpc(request.send, { 'idempotency-key': value });
    api.operations.sendMessage = sendMessage;
    expect(keys).toEqual([key]);
  });

  it('NUL in text is kept', async () => {
    expect((await api.rpc(send({ ...good, parts: [{ text: 'a\0b' }] }))).status).toBe(200);
  });

  it.each([
    [
      'text',
      send({ ...good, parts: [{ text: 'ok' }, { text: 'half an emoji \ud83d' }] }),
      'message.parts[1].text',
    ],
    ['data', send({ ...good, parts: [{ data: { a: ['\ude00'] } }] }), 'message.parts[0].data.a[0]'],
    ['a key of data', send({ ...good, parts: [{ data: { '\ud83d': 1 } }] }), 'message.parts[0].data'],
    [
      'the name of a file',
      send({ ...good, parts: [{ url: 'u:', filename: '\ud83d' }] }),
      'message.parts[0].filename',
    ],
    ['metadata', send({ ...good, metadata: { a: '\ud83d' } }), 'message.metadata.a'],
    ['an id', send({ ...good, messageId: '\ud83d' }), 'message.messageId'],
    ['a number', send({ ...good, parts: [{ data: [1, 'n/a'] }] }), 'message.parts[0].data[1]'],
  ])(
    '%s that protocol buffers cannot carry is refused by its field, in either version',
    async (_what, body, field) => {
      const newer = JSON.stringify(body).replace('"n/a"', '-1e999');
      const older = newer.replace('"SendMessage"', '"message/send"').replace('"ROLE_USER"', '"user"');
      for (const [version, text] of [['1.0', newer] as const, ['0.3', older] as const]) {
        const { code, message } = await refusal(await api.rpc(text, { 'a2a-version': version }));
        expect([code, message?.split(':')[0]]).toEqual([-32602, field]);
      }
    },
  );

  it('of a doubled key the last one counts, as everywhere in JavaScript', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"one","id":"two"}}';
    expect(await (await api.rpc(body)).json()).toMatchObject({ result: { id: 'two' } });
  });
});

const HEADERS = { authorization: 'Bearer caller', 'content-type': 'application/json' };

/** A POST with chunked encoding, as fetch does not make one from a string. */
function chunked(
  fill: (write: (text: string) => void) => void,
  headers: Record<string, string> = {},
): Promise<{ status?: number; body: string }> {
  return new Promise((resolve, reject) => {
    const upload = httpRequest(`${api.url}/agents/echo`, {
      method: 'POST',
      headers: { ...HEADERS, ...headers },
    });
    upload.on('error', reject).on('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => resolve({ status: response.statusCode, body }));
    });
    const go = () => {
      fill((text) => upload.write(text));
      upload.end();
    };
    if (headers.expect) upload.once('continue', go).flushHeaders();
    else go();
  });
}

/** Resolves when the log has a line like that. */
async function logged(matches: (line: Record<string, unknown>) => boolean): Promise<void> {
  while (!api.log.some(matches)) await new Promise((resolve) => setImmediate(resolve));
}

function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth);
}
