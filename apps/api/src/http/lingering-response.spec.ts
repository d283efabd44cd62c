import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { LingeringResponse } from './lingering-response.js';
import { PacedRequest } from './paced-request.js';

const MIB = 1024 * 1024;
/** Larger than the buffers of the kernel. */
const BODY = Buffer.alloc(16 * MIB, 'a');
/** Python's urllib writes the whole request before it reads, and sends `Connection: close`. */
const URLLIB = `
import sys, urllib.request, urllib.error
url, token, media, size = sys.argv[1:]
headers = {'Authorization': 'Bearer ' + token, 'Content-Type': media}
try:
  urllib.request.urlopen(urllib.request.Request(url, data=b'a' * int(size), headers=headers), timeout=20)
except urllib.error.HTTPError as error:
  print(error.code, len(error.read()) > 0)
`;
const run = promisify(execFile);
const isHere = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi({ BODY_LIMIT_BYTES: String(MIB), UNAUTHENTICATED_PER_SECOND: '1' });
});
afterAll(() => api.close());

/** Refusals that come before the body was read. */
const REFUSALS: [status: number, path: string, token: string, media: string][] = [
  [413, '/agents/echo', 'caller', 'application/json'],
  [413, '/v1/schedules', 'admin', 'application/json'],
  [415, '/agents/echo', 'caller', 'text/plain'],
  [403, '/v1/schedules', 'reader', 'application/json'],
  [404, '/nowhere', 'caller', 'application/json'],
  [405, '/healthz', 'caller', 'application/json'],
  [400, '/agents/%zz', 'caller', 'application/json'],
  [401, '/agents/echo', 'wrong', 'application/json'],
];

/** Writes the whole request, then reads. Resolves with everything that the server sent, once it has closed the connection. */
async function writeFirst(url: string, head: string, body: Buffer): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.pause();
  await once(socket, 'connect');
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.write(head);
    socket.write(body, (error) => (error ? reject(error) : resolve()));
  });
  return text(socket);
}

const headOf = (path: string, token: string, media: string, length = BODY.length): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer ${token}\r\n` +
  `content-type: ${media}\r\ncontent-length: ${length}\r\n\r\n`;

const chunkedHead = (path: string, token: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer ${token}\r\n` +
  'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';

it('a body in many chunks of a byte is read in many turns of the event loop', async () => {
  // Eight bodies are read in a turn, each for 256 chunks.
  const [CHUNKS, CHUNKS_A_TURN] = [100_000, 8 * 256];
  const body = Buffer.from(`${'1\r\n \r\n'.repeat(CHUNKS)}0\r\n\r\n`);
  let answer: string | undefined;
  void writeFirst(api.url, chunkedHead('/agents/echo', 'caller'), body).then((text) => (answer = text));
  let turns = 0;
  for (; answer === undefined; turns++) await new Promise((resolve) => setImmediate(resolve));
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  expect(turns).toBeGreaterThan(CHUNKS / CHUNKS_A_TURN);
});

describe('a refusal that comes before the body was read', () => {
  it.each(REFUSALS)('%s at %s reaches a client that writes first', async (status, path, token, media) => {
    const answer = await writeFirst(api.url, headOf(path, token, media), BODY);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/content-length: [1-9]/);
    expect(() => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as unknown).not.toThrow();
  });

  it('429 reaches it, too: one address without a token has sent too much', async () => {
    const write = (): Promise<string> =>
      writeFirst(api.url, headOf('/agents/echo', 'wrong', 'application/json'), BODY);
    const isRefused = (answer: string): boolean => answer.startsWith('HTTP/1.1 429 ');
    let answers: string[] = [];
    // At the same time, so that they are too many for one second on a slow machine as well.
    while (!answers.some(isRefused)) answers = await Promise.all([write(), write(), write(), write()]);
    for (const answer of answers) {
      if (isRefused(answer)) expect(answer).toMatch(/\r\nretry-after: /);
      else expect(answer).toMatch(/^HTTP\/1.1 401 /);
    }
  });

  // The clients of other languages are not on every machine; the tests above write to a socket, and run everywhere.
  (isHere('python3') ? it : it.skip)('reaches Python’s urllib', async () => {
    for (const [status, path, token, media] of REFUSALS.slice(0, 5)) {
      const args = ['-c', URLLIB, api.url + path, token, media, String(BODY.length)];
      expect((await run('python3', args)).stdout).toBe(`${status} True\n`);
    }
  });

  (isHere('curl') ? it : it.skip)('reaches curl', async () => {
    const url = `${api.url}/agents/echo`;
    const headers = ['-H', 'content-type: application/json', '-H', 'authorization: Bearer caller'];
    const args = ['-sS', '-o', '/dev/null', '-w', '%{http_code}', ...headers, '--data-binary', '@-', url];
    const curl = run('curl', args);
    curl.child.stdin!.on('error', () => undefined).end(BODY);
    expect((await curl).stdout).toBe('413');
  });

  it('reaches fetch, and the connection takes the next request', async () => {
    const headers = { authorization: 'Bearer caller', 'content-type': 'application/json' };
    const answer = await fetch(`${api.url}/agents/echo`, { method: 'POST', headers, body: BODY });
    expect(answer.status).toBe(413);
    expect((await fetch(`${api.url}/healthz`)).status).toBe(200);
  });

  it('is logged as answered, although the caller has gone on sending', async () => {
    await writeFirst(api.url, headOf('/agents/echo', 'caller', 'text/plain'), BODY);
    await writeFirst(api.url, headOf('/healthz', 'caller', 'text/plain'), BODY);
    const lines = (): typeof api.log => api.log.filter(({ status }) => status === 415 || status === 405);
    while (lines().at(-1)?.status !== 405) await new Promise((resolve) => setImmediate(resolve));
    for (const line of lines()) expect(line).not.toHaveProperty('callerLeft');
  });
});

describe('the bounds', () => {
  /** A bound that the slowest machine reaches long before the bound of time. */
  class SmallBound extends LingeringResponse<PacedRequest> {
    protected override readonly maxBytes = 16 * MIB;
  }

  /** A server that answers at once. Resolves with the time between the answer and the end of the connection, in ms. */
  async function timeOpen(head: string, more: (socket: Socket) => void): Promise<number> {
    const server = createServer(
      { IncomingMessage: PacedRequest, ServerResponse: SmallBound },
      (_, response) => response.end('no'),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as { port: number }).port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(head);
    await once(socket, 'data');
    const answeredAt = performance.now();
    more(socket);
    // Not `once`, which rejects for an error: the server may reset the connection.
    await new Promise((resolve) => socket.once('close', resolve));
    server.close();
    return performance.now() - answeredAt;
  }
  const LENGTH = 1e12;

  it('a caller that sends nothing more is closed after five seconds', async () => {
    const ms = await timeOpen(headOf('/', '', '', LENGTH), () => undefined);
    expect(ms).toBeGreaterThan(4_900);
    expect(ms).toBeLessThan(20_000);
  });

  it('a caller that sends without an end is closed, however fast it sends', async () => {
    const CHUNK = BODY.subarray(0, MIB);
    let sent = 0;
    await timeOpen(headOf('/', '', '', LENGTH), (socket) => {
      const send = (error?: Error | null): void => {
        sent = socket.bytesWritten;
        if (!error && sent < 2_000 * MIB) socket.write(CHUNK, send);
      };
      send();
    });
    expect(sent).toBeGreaterThan(14 * MIB);
    expect(sent).toBeLessThan(64 * MIB);
  });

  it('a caller that sends chunks of a byte is closed sooner: each takes as long as a large one', async () => {
    const CHUNKS = '1\r\nx\r\n'.repeat(1_000);
    let sent = 0;
    await timeOpen(chunkedHead('/', ''), (socket) => {
      const send = (error?: Error | null): void => {
        sent = socket.bytesWritten;
        if (!error && sent < 200 * MIB) socket.write(CHUNKS, send);
      };
      send();
    });
    expect(sent).toBeLessThan(12 * MIB);
  });
});
