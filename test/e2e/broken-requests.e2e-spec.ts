import { setTimeout as delay } from 'node:timers/promises';
import { DRIVERS } from '../support/index.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { httpPost, RawSocket } from '../support/raw-socket.js';
import { Stack } from '../support/stack.js';

const LIMITS = { HEADERS_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '1500' };
const PATH = '/agents/echo';

let stack: Stack;
let caller: RawCaller;
let url: string;
let headers: Record<string, string>;

beforeAll(async () => {
  stack = await Stack.start({ driver: DRIVERS[0]!, env: LIMITS });
  const { token } = await stack.createTenant();
  url = stack.apis[0]!.url;
  caller = new RawCaller(stack.url(0), token);
  headers = { authorization: `Bearer ${token}`, 'a2a-version': '1.0' };
});
afterAll(() => stack.stop());
afterEach(async () => {
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

const rpc = (method: string, params: object, id: unknown = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
const oneTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);
const statusOf = (text: string): string => text.slice(9, 12);
const bodyOf = (text: string) =>
  JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as Record<string, never>;
/** The head of a request whose body comes in chunks. */
const chunkedPost = (): string => {
  return httpPost(PATH, { ...headers, 'transfer-encoding': 'chunked' }).replace('content-length: 0\r\n', '');
};

describe('a slow sender', () => {
  it('of headers is answered with 408, while others are served', async () => {
    const peers = await Promise.all(oneTo(50).map(() => RawSocket.open(url)));
    for (const peer of peers) peer.trickle(`GET /healthz HTTP/1.1\r\nx-long: ${'a'.repeat(10_000)}`, 50);
    let served = 0;
    const ended = new Set<RawSocket>();
    for (const peer of peers) void peer.closed.then(() => ended.add(peer));
    while (ended.size < peers.length) {
      expect((await caller.call('SendMessage', sendParams('meanwhile'))).result!.task).toBeDefined();
      served += 1;
      await delay(50);
    }
    expect(served).toBeGreaterThan(0);
    for (const { received } of peers) {
      expect(statusOf(received)).toBe('408');
      expect(bodyOf(received).error).toMatchObject({ code: 408, status: 'REQUEST_TIMEOUT' });
    }
  });

  it('of nothing at all is closed', async () => {
    const peers = await Promise.all(oneTo(200).map(() => RawSocket.open(url)));
    await Promise.all(peers.map(({ closed }) => closed));
  });

  it.each([
    ['of a body', () => httpPost(PATH, { ...headers, 'content-length': '5000' }), '{"jsonrpc":"2.0",'],
    ['of chunks', chunkedPost, '1\r\n{\r\n1\r\n"\r\n'],
  ])('%s is answered with 408 as JSON-RPC, and closed', async (_of, head, body) => {
    const peer = await RawSocket.open(url);
    peer.send(head()).trickle(body.repeat(50), 30);
    await peer.closed;
    expect(statusOf(peer.received)).toBe('408');
    expect(bodyOf(peer.received)).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: expect.stringContaining('1500 ms') as unknown },
    });
  });

  it('of a body in single bytes is served if it is quick enough', async () => {
    const body = Buffer.from(rpc('SendMessage', sendParams('x'.repeat(100_000)), 'bytes'));
    const chunks = Buffer.concat([...body].map((byte) => Buffer.from([0x31, 13, 10, byte, 13, 10])));
    const patient = await stack.addApi({ REQUEST_TIMEOUT_MS: '120000' });
    const peer = await RawSocket.open(patient.url);
    peer.send(chunkedPost()).send(chunks).send('0\r\n\r\n');
    expect(statusOf(await peer.until(/"id":"bytes"/))).toBe('200');
    peer.close();
  });
});

describe('a peer that breaks HTTP', () => {
  const answerTo = async (bytes: string | Buffer, end = false): Promise<string> => {
    const peer = await RawSocket.open(url);
    peer.send(bytes);
    if (end) peer.socket.end();
    await peer.closed;
    return peer.received;
  };
  const get = rpc('GetTask', { id: 'unknown' });

  it.each([
    ['garbage', '\0\x01\x02 nonsense\r\n\r\n'],
    ['a TLS hello', Buffer.from('16030100a5010000a10303', 'hex')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    [
      'two lengths',
      'POST /agents/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}',
    ],
    [
      'a length and chunks',
      'POST /agents/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a header without a name', 'GET /healthz HTTP/1.1\r\nhost: x\r\n: y\r\n\r\n'],
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n'],
  ])('with %s is answered with 400 and closed', async (_what, bytes) => {
    const answer = await answerTo(bytes);
    expect(statusOf(answer)).toBe('400');
  });

  it('with headers beyond all measure is answered with 431 and closed', async () => {
    const many = oneTo(3_000).map((n) => `x-${n}: ${n}\r\n`);
    const answer = await answerTo(`GET /healthz HTTP/1.1\r\nhost: x\r\n${many.join('')}\r\n`);
    expect(statusOf(answer)).toBe('431');
  });

  it('with a body longer than it said is answered for what it said, and closed for the rest', async () => {
    const answer = await answerTo(httpPost(PATH, headers, get) + get);
    const [first, second] = answer.split(/(?=HTTP\/1\.1 \d)/);
    expect([statusOf(first!), bodyOf(first!).error]).toMatchObject(['200', { code: -32001 }]);
    expect(statusOf(second!)).toBe('400');
  });

  it('with a body shorter than it said is answered with 400', async () => {
    expect(
      statusOf(await answerTo(httpPost(PATH, { ...headers, 'content-length': '5000' }, get), true)),
    ).toBe('400');
  });

  it('with a body cut short behind a whole request gets that one answered', async () => {
    const cut = httpPost(PATH, headers, get).slice(0, -10);
    const answer = await answerTo(httpPost(PATH, headers, get).repeat(2) + cut, true);
    expect(answer.split(/(?=HTTP\/1\.1 \d)/).map(statusOf)).toEqual(['200', '200', '400']);
  });

  it('with an invalid chunk is answered with 400', async () => {
    expect(statusOf(await answerTo(`${chunkedPost()}zz\r\nhello`))).toBe('400');
  });

  it('with bytes that are not UTF-8 gets an error that names UTF-8', async () => {
    const body = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    const head = httpPost(PATH, { ...headers, 'content-length': String(body.length), connection: 'close' });
    expect(bodyOf(await answerTo(Buffer.concat([Buffer.from(head), body])))).toMatchObject({
      id: null,
      error: { code: -32700 },
    });
  });

  it('waits for a go-ahead, if it asks for one', async () => {
    const peer = await RawSocket.open(url);
    peer.send(httpPost(PATH, { ...headers, expect: '100-continue', 'content-length': String(get.length) }));
    expect(await peer.until(/\r\n\r\n/)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    peer.send(get);
    await peer.until(/HTTP\/1.1 200 OK[^]*-32001/);
    peer.close();
  });

  it('gets the answers to requests in a row in their order, and garbage behind them refused', async () => {
    const requests = oneTo(20).map((n) =>
      httpPost(PATH, headers, rpc('SendMessage', sendParams(`n ${n}`), n)),
    );
    const answer = await answerTo(`${requests.join('')}nonsense\r\n\r\n`);
    const parts = answer.split(/(?=HTTP\/1\.1 \d)/);
    expect(parts.map(statusOf)).toEqual([...Array<string>(20).fill('200'), '400']);
    expect(parts.slice(0, 20).map((part) => bodyOf(part).id)).toEqual(oneTo(20));
  });
});
