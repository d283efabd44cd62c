import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** "Ready for query, idle", the last bytes of a server's answer to a client that connects. */
const READY = Buffer.from('5a0000000549', 'hex');
const FIELDS = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
const FATAL = Buffer.concat([Buffer.from('E\0\0\0'), Buffer.from([FIELDS.length + 4]), Buffer.from(FIELDS)]);

/** A proxy before Postgres that can end connections in the moment in which they are made, and make them late. */
export class CuttingProxy {
  private readonly sockets = new Set<Socket>();
  private toRefuse = 0;
  /** How long a new connection waits before Postgres gets it, in milliseconds. */
  delayMs = 0;
  /** Connections that were ended as they became ready. */
  refusals = 0;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async before(databaseUrl: string): Promise<CuttingProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const target = new URL(databaseUrl);
    const url = new URL(databaseUrl);
    url.port = (server.address() as AddressInfo).port.toString();
    const proxy = new CuttingProxy(server, url.toString());
    server.on('connection', (client: Socket) => {
      const join = (): void => proxy.join(client, connect(Number(target.port), target.hostname));
      setTimeout(join, proxy.delayMs);
    });
    return proxy;
  }

  /** Cuts every connection, and ends the next `refused` ones as they become ready. */
  cut(refused: number): void {
    this.toRefuse = refused;
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private join(client: Socket, server: Socket): void {
    let isReady = false;
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(server);
    server.on('data', (bytes: Buffer) => {
      const becomesReady = !isReady && bytes.subarray(-READY.length).equals(READY);
      isReady ||= becomesReady;
      if (!becomesReady || this.toRefuse === 0) return void client.write(bytes);
      this.toRefuse -= 1;
      this.refusals += 1;
      client.end(Buffer.concat([bytes, FATAL]));
    });
  }
}
