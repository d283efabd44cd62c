import { connect, createServer, type Socket } from 'node:net';

const PROTOCOL_3 = 196_608;

/** A port in front of Postgres that notes the text of every statement that goes through it. */
export class StatementLog {
  private statements: string[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer({ noDelay: true });

  private constructor(private readonly target: URL) {
    this.server.on('connection', (near) => this.accept(near));
  }

  static async start(databaseUrl: string): Promise<StatementLog> {
    const log = new StatementLog(new URL(databaseUrl));
    await new Promise<void>((resolve) => log.server.listen(0, '127.0.0.1', resolve));
    return log;
  }

  /** The URL of the database, through this port. */
  get url(): string {
    const address = this.server.address();
    const url = new URL(this.target);
    url.host = `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
    return url.toString();
  }

  /** What was executed since the last call, in the order in which it came. */
  take(): string[] {
    return this.statements.splice(0);
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private accept(near: Socket): void {
    const far = connect({ host: this.target.hostname, port: Number(this.target.port), noDelay: true });
    const note = reader((statement) => this.statements.push(statement));
    near.on('data', note);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        this.sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
  }
}

/** Reads one connection's frontend messages: Query, Parse, and the Bind that executes what was parsed. */
function reader(note: (statement: string) => void): (chunk: Buffer) => void {
  const prepared = new Map<string, string>();
  let rest = Buffer.alloc(0);
  let started = false;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = started ? 1 : 0;
      if (rest.length < head + 4) return;
      const end = head + rest.readInt32BE(head);
      if (rest.length < end) return;
      const type = started ? String.fromCharCode(rest[0]!) : '';
      const [first = '', second = ''] = rest.toString('utf8', head + 4, end).split('\0');
      if (!started) started = rest.readInt32BE(4) === PROTOCOL_3;
      else if (type === 'Q') note(first);
      else if (type === 'P') prepared.set(first, second);
      else if (type === 'B') note(prepared.get(second) ?? second);
      rest = rest.subarray(end);
    }
  };
}
