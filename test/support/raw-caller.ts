import { randomUUID } from 'node:crypto';
import http from 'node:http';

/** One SSE frame that carries data. */
export interface Frame {
  id: number;
  data: RpcAnswer;
}

/** A JSON-RPC answer, as far as tests look into it. */
export interface RpcAnswer {
  id: string | number | null;
  result?: Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire
  error?: { code: number; message: string; data?: unknown };
}

/** A caller that sees the wire as it is: raw envelopes, frame ids, and connections it can cut. */
export class RawCaller {
  constructor(
    readonly url: string,
    private readonly token: string,
    private readonly version = '1.0',
    private readonly more: Record<string, string> = {},
  ) {}

  /** The same caller at another URL, e.g. of another API process. */
  at(url: string): RawCaller {
    return new RawCaller(url, this.token, this.version, this.more);
  }

  /** The same caller, with these headers on every request. */
  with(headers: Record<string, string>): RawCaller {
    return new RawCaller(this.url, this.token, this.version, { ...this.more, ...headers });
  }

  /** One unary call. */
  async call(method: string, params: object, headers: Record<string, string> = {}): Promise<RpcAnswer> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: { ...this.headers(), ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return (await response.json()) as RpcAnswer;
  }

  /**
   * The frames of a streaming call. Leaving the loop cuts the connection.
   * @throws Error if the answer is no stream, or the connection breaks
   */
  async *stream(method: string, params: object, lastEventId?: number): AsyncGenerator<Frame> {
    const resume: Record<string, string> =
      lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) };
    const response = await this.post({ method, params }, resume);
    try {
      if (!response.headers['content-type']?.startsWith('text/event-stream')) {
        throw new Error(`not a stream: ${await textOf(response)}`);
      }
      let buffer = '';
      for await (const chunk of response.setEncoding('utf8')) {
        buffer += chunk as string;
        const records = buffer.split('\n\n');
        buffer = records.pop() ?? '';
        for (const record of records) {
          const frame = parseFrame(record);
          if (frame) yield frame;
        }
      }
    } finally {
      response.destroy();
    }
  }

  private headers(): Record<string, string> {
    return {
      'content-type': 'application/json',
      authorization: `Bearer ${this.token}`,
      'a2a-version': this.version,
      ...this.more,
    };
  }

  private post(body: object, headers: Record<string, string>): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', headers: { ...this.headers(), ...headers }, agent: false };
      const request = http.request(this.url, options, resolve);
      request.on('error', reject);
      request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }));
    });
  }
}

/** Params of a send in the 1.0 form. */
export const sendParams = (
  text: string,
  more: { metadata?: object; taskId?: string; contextId?: string } = {},
) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
});

function parseFrame(record: string): Frame | undefined {
  const field = (name: string): string | undefined =>
    record
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field('data');
  return data === undefined ? undefined : { id: Number(field('id')), data: JSON.parse(data) as RpcAnswer };
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  return text;
}
