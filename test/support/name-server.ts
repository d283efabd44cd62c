import { type RemoteInfo, type Socket, createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { type Answer, decode, encode, type Question } from 'dns-packet';

/** The answer for a name: its addresses, that there are none, or no answer. */
export type NameReply = { a?: string[]; aaaa?: string[] | 'silent' } | 'unknown' | 'refused' | 'silent';

/** A DNS server on loopback (UDP). It swallows the questions for names whose reply is `silent`. */
export class NameServer {
  /** Questions, as `A name`. */
  readonly asked: string[] = [];
  /** `address:port`. */
  address = '';
  private readonly socket: Socket = createSocket('udp4');
  private readonly events = new EventEmitter();

  /** @param replies by name; a name that is not here has the reply of `*`, else it does not exist */
  constructor(readonly replies: Record<string, NameReply | ((question: string) => NameReply)>) {
    this.socket.on('message', (message, from) => this.answer(message, from));
  }

  async start(): Promise<this> {
    this.socket.bind(0, '127.0.0.1');
    await once(this.socket, 'listening');
    this.address = `127.0.0.1:${this.socket.address().port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.socket.close();
    await once(this.socket, 'close');
  }

  /** Waits until it was asked for so many names that match. */
  async isAskedFor(matches: (name: string) => boolean, count: number): Promise<void> {
    const names = (): string[] => this.asked.map((each) => each.split(' ')[1] ?? '').filter(matches);
    while (new Set(names()).size < count) await once(this.events, 'asked');
  }

  private answer(message: Buffer, { address, port }: RemoteInfo): void {
    const { id, questions = [] } = decode(message);
    const [question] = questions;
    if (!question) return;
    const name = question.name.toLowerCase();
    this.asked.push(`${question.type} ${name}`);
    this.events.emit('asked');
    const known = this.replies[name] ?? this.replies['*'] ?? 'unknown';
    const reply = typeof known === 'function' ? known(`${question.type} ${name}`) : known;
    const answers = typeof reply === 'string' ? [] : recordsOf(question, reply);
    if (reply === 'silent' || answers === 'silent') return;
    const code = { unknown: 3, refused: 5 }[reply as string] ?? 0;
    const response = { type: 'response' as const, id: id ?? 0, flags: 0x180 | code, questions, answers };
    this.socket.send(encode(response), port, address);
  }
}

function recordsOf({ type, name }: Question, { a = [], aaaa = [] }: Exclude<NameReply, string>) {
  if (type === 'AAAA' && aaaa === 'silent') return 'silent';
  const [kind, addresses] = type === 'A' ? (['A', a] as const) : (['AAAA', aaaa as string[]] as const);
  return addresses.map((data): Answer => ({ type: kind, name, ttl: 1, data }));
}
