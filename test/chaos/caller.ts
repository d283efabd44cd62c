import http from 'node:http';
import { performance } from 'node:perf_hooks';
import { DIALECTS, type Dialect } from './dialects.js';
import type { Frame, Generation, OddAnswer, Oddity, Said } from './observations.js';

/** An API process that a request may go to. */
export interface ApiAddress {
  url: string;
  pid: number;
}

/** Whom a request comes from. */
export interface Credentials {
  tenant: string;
  token: string;
  /** What its messages carry; no frame for it may carry another's. */
  mark: string;
}

export interface Request {
  /** Name of the task in the plan, for the report. */
  task: string;
  agent: string;
  method: string;
  params: object;
  lastEventId?: number;
  /** The request is one of MCP with this name in its header. Absent: it is one of A2A. */
  mcpName?: string;
  /** Errors that the caller can make sense of, by code: they are no oddities. */
  understood?: readonly number[];
  /** The caller itself breaks off when nothing has come for so long. Absent: it waits till it is odd. */
  patienceMs?: number;
}

/** What an answer was; `cut` = the caller did not wait for it. */
export type Outcome = { kind: 'result'; said: Said; result: unknown } | { kind: 'cut' } | Oddity;
/** How a stream was over: the server ended it, we cut it, or something odd happened. */
export type StreamEnd = { kind: 'ended' } | { kind: 'cut' } | Oddity;

/** Told of everything odd, and of marks of others. */
export interface Witness {
  oddity(answer: OddAnswer): void;
  foreignMark(task: string, tenant: string, text: string): void;
}

/** A stream without even a heartbeat for so long is dead, however busy the machine. */
const STREAM_SILENCE_MS = 30_000;
/** Longest that an answer may take. A blocking send lasts as long as its turn, outages included, however busy the machine. */
const ANSWER_MS = 180_000;

const MCP_VERSION = '2026-07-28';
/** The `_meta` of each request of an MCP client with tasks. */
export const MCP_META = {
  'io.modelcontextprotocol/protocolVersion': MCP_VERSION,
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
};

export const now = (): number => performance.timeOrigin + performance.now();

/** A raw HTTP client for one tenant and one generation of the protocol, which reports every oddity. */
export class Caller {
  readonly dialect: Dialect;

  constructor(
    private readonly who: Credentials,
    readonly generation: Generation,
    private readonly witness: Witness,
  ) {
    this.dialect = DIALECTS[generation];
  }

  /** One unary call. Never rejects. */
  async call(api: ApiAddress, request: Request): Promise<Outcome> {
    const from = now();
    const silence = new Silence(request.patienceMs !== undefined);
    const outcome = await this.exchange(api, request, silence).catch((error: unknown) =>
      silence.asOddity(error),
    );
    this.tell(api, request, from, outcome);
    return outcome;
  }

  /**
   * A streaming call, frame by frame. Never rejects.
   * @param onFrame `cut` breaks the connection off
   */
  async stream(
    api: ApiAddress,
    request: Request,
    onFrame: (frame: Frame) => 'cut' | 'go-on',
  ): Promise<StreamEnd> {
    const from = now();
    const silence = new Silence(request.patienceMs !== undefined);
    const end = await this.read(api, request, onFrame, silence).catch((error: unknown) =>
      silence.asOddity(error),
    );
    this.tell(api, request, from, end);
    return end;
  }

  /** An answer that is none of the errors that may come under faults, and wrong. */
  tellWrong(api: ApiAddress, { task, method }: Request, why: string): void {
    const at = now();
    this.witness.oddity({
      task,
      method,
      api: api.pid,
      from: at,
      to: at,
      outcome: { kind: 'error', code: 0, message: why },
    });
  }

  private async exchange(api: ApiAddress, request: Request, silence: Silence): Promise<Outcome> {
    const response = await this.post(api, request, request.patienceMs ?? ANSWER_MS, silence);
    const body = await textOf(response);
    this.lookForMarks(request, body);
    return this.outcomeOf(response.statusCode ?? 0, body, request);
  }

  private async read(
    api: ApiAddress,
    request: Request,
    onFrame: (frame: Frame) => 'cut' | 'go-on',
    silence: Silence,
  ): Promise<StreamEnd> {
    const response = await this.post(api, request, request.patienceMs ?? STREAM_SILENCE_MS, silence);
    if (!response.headers['content-type']?.startsWith('text/event-stream')) {
      const outcome = this.outcomeOf(response.statusCode ?? 0, await textOf(response), request);
      return outcome.kind === 'result' ? { kind: 'http', status: 200, body: 'not a stream' } : outcome;
    }
    try {
      let buffer = '';
      for await (const chunk of response.setEncoding('utf8')) {
        buffer += chunk as string;
        const records = buffer.split('\n\n');
        buffer = records.pop() ?? '';
        for (const record of records) {
          this.lookForMarks(request, record);
          const frame = this.frameOf(record);
          if (!frame) continue;
          if ('kind' in frame) return frame;
          if (onFrame(frame) === 'cut') return { kind: 'cut' };
        }
      }
      return { kind: 'ended' };
    } finally {
      response.destroy();
    }
  }

  private post(
    api: ApiAddress,
    request: Request,
    silenceMs: number,
    silence: Silence,
  ): Promise<http.IncomingMessage> {
    const { agent, method, params, lastEventId, mcpName } = request;
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${this.who.token}`,
      ...(mcpName === undefined
        ? { 'a2a-version': this.generation }
        : {
            accept: 'application/json',
            'mcp-protocol-version': MCP_VERSION,
            'mcp-method': method,
            'mcp-name': mcpName,
          }),
      ...(lastEventId !== undefined && { 'last-event-id': String(lastEventId) }),
    };
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', headers, agent: false, timeout: silenceMs };
      const path = mcpName === undefined ? `/agents/${agent}` : '/mcp';
      const sent = http.request(`${api.url}${path}`, options, resolve);
      sent.on('timeout', () => {
        silence.fell = true;
        sent.destroy();
      });
      sent.on('error', reject);
      sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    });
  }

  private outcomeOf(status: number, body: string, { mcpName }: Request): Outcome {
    const answer = parse(body);
    if (answer?.error) return errorOf(answer.error);
    if (status !== 200 || answer?.result === undefined) return { kind: 'http', status, body };
    const said = mcpName === undefined ? this.dialect.read(answer.result) : ({ kind: 'other' } as const);
    return { kind: 'result', said, result: answer.result };
  }

  /** A frame, or the error that ends the stream; undefined for a comment. */
  private frameOf(record: string): Frame | Oddity | undefined {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(record)?.[1];
    const data = field('data');
    if (data === undefined) return undefined;
    const answer = parse(data);
    if (answer?.error) return errorOf(answer.error);
    if (answer?.result === undefined) return { kind: 'http', status: 200, body: record };
    const { result } = answer;
    const said = this.dialect.read(result);
    return { sequence: Number(field('id')), at: now(), raw: JSON.stringify(result), said };
  }

  private lookForMarks({ task }: Request, text: string): void {
    for (const [mark] of text.matchAll(/mark-[\da-f]{12}/g)) {
      if (mark !== this.who.mark) this.witness.foreignMark(task, this.who.tenant, text);
    }
  }

  private tell(api: ApiAddress, request: Request, from: number, end: Outcome | StreamEnd): void {
    if (end.kind === 'result' || end.kind === 'ended' || end.kind === 'cut') return;
    if (end.kind === 'error' && request.understood?.includes(end.code)) return;
    const { task, method } = request;
    this.witness.oddity({ task, method, api: api.pid, from, to: now(), outcome: end });
  }
}

/** Whether a connection was given up because nothing came: the error does not show it. */
class Silence {
  fell = false;

  constructor(private readonly isImpatience: boolean) {}

  asOddity(error: unknown): Oddity | { kind: 'cut' } {
    if (this.fell) return { kind: this.isImpatience ? 'cut' : 'silent' };
    return { kind: 'broken', why: error instanceof Error ? error.message : String(error) };
  }
}

const errorOf = ({ code, message }: { code: number; message: string }): Oddity => ({
  kind: 'error',
  code,
  message,
});

function parse(text: string): { result?: unknown; error?: { code: number; message: string } } | undefined {
  try {
    return JSON.parse(text) as { result?: unknown };
  } catch {
    return undefined;
  }
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  return text;
}
