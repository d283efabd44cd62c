import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { fineBodies } from './fine-bodies.js';
import { LingeringResponse } from './lingering-response.js';
import { PacedRequest } from './paced-request.js';

/** What libuv reads of a connection at once. */
const READ_BYTES = 65_536;
const CHUNK = '1\r\nx\r\n';
const HEAD = 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n';
/** More than libuv reads of a connection in a turn of the event loop. */
const MANY = CHUNK.repeat(400_000);

let server: Server;
/** Those of the server. */
let sockets: Socket[];
beforeEach(async () => {
  server = createServer({ IncomingMessage: PacedRequest, ServerResponse: LingeringResponse });
  sockets = [];
  server.on('connection', (socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function open(): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

const bytesRead = (): number => sockets.reduce((sum, socket) => sum + socket.bytesRead, 0);

/** The most that is read in a turn of the event loop, until `isOver`. */
async function mostInATurn(isOver: () => boolean): Promise<number> {
  let [most, before] = [0, 0];
  while (!isOver()) {
    await nextTurn();
    most = Math.max(most, bytesRead() - before);
    before = bytesRead();
  }
  return most;
}

it.each(['reads it', 'waits for something else first'])(
  'a connection with a body in small chunks is read once in a turn, and a handler that %s gets all of it',
  async (handler) => {
    let answer: string | undefined;
    let [length, mostKept] = [0, 0];
    server.on('request', (request, response) => {
      void (handler === 'reads it' ? Promise.resolve() : nextTurn()).then(() => {
        request.on('data', (chunk: Buffer) => {
          mostKept = Math.max(mostKept, bytesRead() - length * CHUNK.length);
          length += chunk.length;
        });
        request.on('end', () => response.end('read'));
      });
    });
    // Another one has just had its turn, so that this one rests for a while.
    await new Promise<void>((resolve) => fineBodies.rest(() => (resolve(), 20_000)));
    const client = await open();
    client.write(`${HEAD}${CHUNK.repeat(50_000)}0\r\n\r\n`);
    client.once('data', (data) => (answer = String(data)));
    const most = await mostInATurn(() => answer !== undefined);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(length).toBe(50_000);
    expect(most).toBeLessThanOrEqual(READ_BYTES);
    // It rests after each read.
    expect(mostKept).toBeLessThanOrEqual(READ_BYTES + HEAD.length + 256 * CHUNK.length);
    client.destroy();
  },
);

it('the rest of a body in small chunks is not dropped: the connection is closed', async () => {
  server.on('request', (_request, response: LingeringResponse) => response.end('no'));
  const client = await open();
  client.write(HEAD + MANY);
  const closed = new Promise((resolve) => client.once('close', resolve));
  expect(String((await once(client, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /);
  client.resume();
  await closed;
  expect(bytesRead()).toBeLessThanOrEqual(4 * READ_BYTES);
});
