import { connect, createServer, type Server, type Socket } from 'node:net';
import { TcpProxy } from './tcp-proxy.js';

/** What a client of an echoing server gets through a proxy. */
class Client {
  text = '';
  closed: Promise<void>;
  readonly socket: Socket;
  private wake: (() => void) | undefined;
  static readonly open: Client[] = [];

  constructor(port: number) {
    Client.open.push(this);
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.socket.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
      this.wake?.();
    });
  }

  async got(text: string): Promise<void> {
    while (this.text !== text) await new Promise<void>((resolve) => (this.wake = resolve));
  }
}

describe('the TCP proxy', () => {
  let server: Server;
  let proxy: TcpProxy;
  /** All that the server has received. */
  let arrived: string;
  const serverPort = (): number => (server.address() as { port: number }).port;

  beforeEach(async () => {
    arrived = '';
    server = createServer((socket) => {
      socket.on('data', (chunk) => (arrived += chunk.toString()));
      socket.on('error', () => undefined).pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    proxy = await TcpProxy.start(serverPort());
  });
  afterEach(() => {
    for (const { socket } of Client.open.splice(0)) socket.destroy();
    proxy.close();
    server.close();
  });

  const write = (client: Client, text: string) =>
    new Promise<void>((resolve) => client.socket.write(text, () => resolve()));

  it('passes everything on, late if a delay is set', async () => {
    const client = new Client(proxy.port);
    await write(client, 'a');
    await client.got('a');
    proxy.set({ mode: 'delay', ms: 40 });
    const started = performance.now();
    await write(client, 'b');
    await client.got('ab');
    expect(performance.now() - started).toBeGreaterThanOrEqual(75);
  });

  it('lets nothing through while it is a black hole, and everything afterwards', async () => {
    const client = new Client(proxy.port);
    await write(client, 'a');
    await client.got('a');
    proxy.set({ mode: 'blackhole' });
    await write(client, 'b');
    const other = new Client(proxy.port);
    await write(other, 'x');
    // What has come to the server by the time that a caller without a proxy has been answered three times.
    const direct = new Client(serverPort());
    for (const text of ['1', '12', '123']) {
      await write(direct, text.at(-1)!);
      await direct.got(text);
    }
    expect([client.text, other.text, arrived]).toEqual(['a', '', 'a123']);
    proxy.set({ mode: 'pass' });
    await Promise.all([client.got('ab'), other.got('x')]);
    expect([arrived.length, arrived]).toEqual([6, expect.stringMatching(/b.*x|x.*b/)]);
  });

  it('cuts what is open and refuses what is new', async () => {
    const client = new Client(proxy.port);
    await write(client, 'a');
    await client.got('a');
    proxy.set({ mode: 'refuse' });
    await client.closed;
    await new Client(proxy.port).closed;
    proxy.set({ mode: 'pass' });
    const again = new Client(proxy.port);
    await write(again, 'c');
    await again.got('c');
  });
});
