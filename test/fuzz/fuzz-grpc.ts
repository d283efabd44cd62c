import { status as Status } from '@grpc/grpc-js';
import fc from 'fast-check';
import http2 from 'node:http2';
import type { Finding, Outcome } from './finding.js';
import { inParallel } from './fuzz-http.js';
import { type GrpcCase, grpcCases } from './grpc-cases.js';
import { LEAK } from './judge.js';
import type { Known } from './requests.js';

const BATCH = 500;
const SESSIONS = 8;
const AT_ONCE = 40;
/** A call that gets no answer and is not closed either for so long is one that was forgotten. */
const ANSWER_MS = 40_000;

export interface GrpcTarget {
  grpcUrl: string;
  token: string;
  known: Known;
}

/** How a call ended: its status and message; or `messages` for a stream that continues. */
interface GrpcOutcome {
  status?: string;
  message?: string;
  http?: number;
  isReset?: boolean;
}

/** Calls that are almost right, many at a time over connections that are kept. */
export async function fuzzGrpc(target: GrpcTarget, cases: number, seed: number): Promise<Outcome> {
  const findings: Finding[] = [];
  let answered = 0;
  const sessions = new Sessions(target.grpcUrl);
  const arbitrary = grpcCases(target.known, target.token);
  for (let from = 0; from < cases; from += BATCH) {
    const batch = fc.sample(arbitrary, { numRuns: Math.min(BATCH, cases - from), seed: seed + from });
    await inParallel(batch, AT_ONCE, async (one, i) => {
      const outcome = await call(sessions.of(i), one);
      // What Node's own client refuses to send.
      if (outcome === 'not sent') return;
      answered += 1;
      const problem = typeof outcome === 'string' ? outcome : judge(outcome);
      if (problem) findings.push({ part: 'grpc', number: from + i, problem, input: shown(one) });
    });
  }
  sessions.close();
  return { findings, answered };
}

/** Connections that are opened again when the server has closed them. */
class Sessions {
  private readonly open: http2.ClientHttp2Session[] = [];

  constructor(private readonly url: string) {}

  of(i: number): http2.ClientHttp2Session {
    const known = this.open[i % SESSIONS];
    if (known && !known.closed && !known.destroyed) return known;
    const session = http2.connect(this.url);
    session.on('error', () => undefined);
    this.open[i % SESSIONS] = session;
    return session;
  }

  close(): void {
    for (const session of this.open) {
      // Its streams are closed. `destroy` crashes Node 20 while something is unsent.
      session.close();
      session.unref();
    }
  }
}

function call(
  session: http2.ClientHttp2Session,
  { path, headers, body }: GrpcCase,
): Promise<GrpcOutcome | string> {
  return new Promise((resolve) => {
    let stream: http2.ClientHttp2Stream;
    try {
      stream = session.request({ ':method': 'POST', ':path': path, ...headers });
    } catch {
      resolve('not sent');
      return;
    }
    const outcome: GrpcOutcome = {};
    const late = setTimeout(() => end('neither answered nor closed'), ANSWER_MS);
    const end = (how: GrpcOutcome | string): void => {
      clearTimeout(late);
      resolve(how);
      stream.close(http2.constants.NGHTTP2_CANCEL);
    };
    const take = (received: http2.IncomingHttpHeaders): void => {
      outcome.http ??= received[':status'] as number | undefined;
      if (typeof received['grpc-status'] === 'string') outcome.status = received['grpc-status'];
      if (typeof received['grpc-message'] === 'string') outcome.message = received['grpc-message'];
    };
    stream.on('error', () => (outcome.isReset = true));
    stream.on('response', take).on('trailers', take);
    // A stream of events, or a watch of health, may continue for ever.
    stream.on('data', () => {
      outcome.status ??= 'goes on';
      setImmediate(() => end(outcome));
    });
    stream.on('close', () => end(outcome));
    stream.end(body);
  });
}

/** What is wrong with an answer, if anything. */
function judge({ status, message = '', http: code, isReset }: GrpcOutcome): string | undefined {
  const text = decodeURIComponent(
    message.replaceAll('%', (sign, at: number) => (/^%[\dA-F]{2}/i.test(message.slice(at)) ? sign : '%25')),
  );
  if (LEAK.test(text)) return `leaks: ${text.slice(0, 300)}`;
  if (code !== undefined && code >= 500) return `HTTP status ${code}`;
  if (status === undefined)
    return isReset || (code !== undefined && code >= 400) ? undefined : 'closed without a status';
  const name = Status[Number(status)];
  // grpc-js itself answers INTERNAL to frames that it cannot read.
  const isOfLibrary = name === 'INTERNAL' && LIBRARY.test(text);
  if ((name === 'INTERNAL' || name === 'UNKNOWN' || name === 'DATA_LOSS') && !isOfLibrary)
    return `${name}: ${text.slice(0, 300)}`;
  return undefined;
}

const LIBRARY = /compress|encoding|Request message|grpc-timeout|deserializ|message (serialization|decoding)/i;

const shown = ({ path, headers, body }: GrpcCase): string => {
  const { authorization, ...rest } = headers;
  const token = authorization?.startsWith('Bearer baton_') ? 'Bearer <token>' : authorization;
  return `${path} ${JSON.stringify({ authorization: token, ...rest })}\n${body.toString('base64').slice(0, 1_000)}`;
};
