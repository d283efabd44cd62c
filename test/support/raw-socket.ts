import { connect, type Socket } from 'node:net';

/** A caller below HTTP: it sends bytes as they are, when it likes, and may stop reading or vanish. */
export class RawSocket {
  received = '';
  /** Resolves when the other side has closed the connection, one way or another. */
  readonly closed: Promise<void>;
  private readonly wakers = new Set<() => void>();

  private constructor(readonly socket: Socket) {
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.received += text;
      for (const wake of this.wakers) wake();
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        resolve();
        for (const wake of this.wakers) wake();
      });
    });
  }

  /** Connected to the server of this URL. */
  static open(url: string): Promise<RawSocket> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new RawSocket(socket)));
      socket.on('end', () => socket.end());
    });
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes);
    return this;
  }

  /** Resolves with all that was received when it matches. Rejects if the connection is closed before. */
  until(pattern: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (pattern.test(this.received)) resolve(this.received);
        else if (this.socket.destroyed)
          reject(new Error(`closed before ${String(pattern)}:\n${this.received}`));
        else return;
        this.wakers.delete(look);
      };
      this.wakers.add(look);
      look();
    });
  }

  /** Sends one byte every few milliseconds until there are no more, or the connection is closed. */
  trickle(bytes: string, everyMs: number): this {
    let sent = 0;
    const timer = setInterval(() => {
      if (sent < bytes.length && this.socket.writable) this.socket.write(bytes[sent++]!);
      else clearInterval(timer);
    }, everyMs);
    this.socket.once('close', () => clearInterval(timer));
    return this;
  }

  /** Gone without a goodbye: a reset. */
  vanish(): void {
    this.socket.resetAndDestroy();
  }

  close(): void {
    this.socket.destroy();
  }
}

/** A POST with a JSON body, as text; `body` may be cut short or drawn out by the headers given. */
export function httpPost(path: string, headers: Record<string, string>, body = ''): string {
  const all = {
    host: 'x',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
