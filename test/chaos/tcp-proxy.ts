import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * - `pass`: everything goes through
 * - `delay`: everything goes through, so many milliseconds later
 * - `blackhole`: connections stay open or are taken, but not a byte goes through until this ends
 * - `refuse`: every connection is cut, new ones at once
 */
export type ProxyMode = { mode: 'pass' | 'blackhole' | 'refuse' } | { mode: 'delay'; ms: number };

const PASS: ProxyMode = { mode: 'pass' };

/** A port in front of a server, through which the way to it can be made slow, silent or cut. */
export class TcpProxy {
  private current: ProxyMode = PASS;
  private readonly pipes = new Set<Pipe>();

  private constructor(
    private readonly server: Server,
    private target: number,
    /** Where it listens on the loopback interface. */
    readonly port: number,
  ) {}

  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const proxy = new TcpProxy(server, targetPort, typeof address === 'object' && address ? address.port : 0);
    server.on('connection', (socket) => proxy.accept(socket));
    return proxy;
  }

  /** The URL of the target, through this proxy. */
  through(url: string): string {
    const proxied = new URL(url);
    proxied.port = this.port.toString();
    return proxied.toString();
  }

  set(mode: ProxyMode): void {
    this.current = mode;
    if (mode.mode === 'refuse') this.cut();
    else for (const pipe of this.pipes) pipe.pump();
  }

  /** Cuts every connection there is, and leads new ones to another server. */
  leadTo(port: number): void {
    this.target = port;
    this.cut();
  }

  /** Cut every connection there is. */
  cut(): void {
    for (const pipe of this.pipes) pipe.destroy();
  }

  close(): void {
    this.server.close();
    this.cut();
  }

  private accept(near: Socket): void {
    near.on('error', () => undefined);
    if (this.current.mode === 'refuse') {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port: this.target, host: '127.0.0.1', noDelay: true });
    far.on('error', () => undefined);
    const pipes = [new Pipe(near, far, () => this.current), new Pipe(far, near, () => this.current)];
    for (const pipe of pipes) this.pipes.add(pipe);
    for (const socket of [near, far]) {
      socket.once('close', () => {
        for (const pipe of pipes) {
          this.pipes.delete(pipe);
          pipe.destroy();
        }
      });
    }
  }
}

/** One direction of a connection: what came in, when it may go out, in order. */
class Pipe {
  private readonly waiting: { chunk: Buffer; at: number }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private ended = false;

  constructor(
    private readonly from: Socket,
    private readonly to: Socket,
    private readonly mode: () => ProxyMode,
  ) {
    from.on('data', (chunk: Buffer) => {
      this.waiting.push({ chunk, at: performance.now() });
      this.pump();
    });
    from.once('end', () => {
      this.ended = true;
      this.pump();
    });
    to.on('drain', () => from.resume());
  }

  /** Send what is due. */
  pump(): void {
    clearTimeout(this.timer);
    const mode = this.mode();
    if (mode.mode === 'blackhole' || mode.mode === 'refuse') return;
    const delay = mode.mode === 'delay' ? mode.ms : 0;
    for (let next = this.waiting[0]; next; next = this.waiting[0]) {
      const wait = next.at + delay - performance.now();
      if (wait > 0) {
        this.timer = setTimeout(() => this.pump(), wait);
        return;
      }
      this.waiting.shift();
      if (!this.to.destroyed && !this.to.write(next.chunk)) this.from.pause();
    }
    if (this.ended) this.to.end();
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.from.destroy();
    this.to.destroy();
  }
}
