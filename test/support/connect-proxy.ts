import { type IncomingMessage, type Server, createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';

/** A proxy that supports only CONNECT (RFC 9110, section 9.3.6) and records its requests. */
export class ConnectProxy {
  /** Hosts and ports, as clients wrote them. */
  readonly asked: string[] = [];
  /** Statuses of the next answers instead of tunnels. */
  readonly refusals: number[] = [];
  /** Required as `user:password`. */
  credentials: string | undefined;
  /** Where names lead that this proxy resolves. */
  readonly names = new Map<string, string>();
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(): Promise<ConnectProxy> {
    const server = createServer((_, response) => response.writeHead(405).end('only CONNECT'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = new ConnectProxy(server, (server.address() as AddressInfo).port);
    server.on('connection', (socket) => proxy.track(socket));
    server.on('connect', (request, socket: Socket) => proxy.open(request, socket));
    return proxy;
  }

  get url(): string {
    const url = new URL(`http://127.0.0.1:${this.port}`);
    [url.username = '', url.password = ''] = (this.credentials ?? '').split(':').map(encodeURIComponent);
    return url.href;
  }

  stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private open({ url = '', headers }: IncomingMessage, client: Socket): void {
    this.asked.push(url);
    const answer = (status: number): void => void client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    if (this.credentials !== undefined) {
      const expected = `Basic ${Buffer.from(this.credentials).toString('base64')}`;
      if (headers['proxy-authorization'] !== expected) return answer(407);
    }
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return answer(refusal);
    const { hostname, port } = new URL(`tunnel://${url}`);
    const host = this.names.get(hostname) ?? hostname.replace(/^\[|\]$/g, '');
    const target = connect(Number(port), host);
    this.track(target);
    target.once('connect', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      target.pipe(client);
      client.pipe(target);
    });
    target.on('error', () => client.destroy());
    target.on('close', () => client.destroy());
    client.on('error', () => target.destroy());
    client.on('close', () => target.destroy());
  }

  private track(socket: Socket): void {
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
  }
}
