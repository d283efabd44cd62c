import fc from 'fast-check';
import http from 'node:http';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { httpPost, RawSocket } from '../support/raw-socket.js';
import type { Stack } from '../support/stack.js';
import { exchange } from './exchange.js';
import type { Finding, Outcome } from './finding.js';
import { type HttpCase, httpCases } from './http-cases.js';
import { judge } from './judge.js';
import type { Known } from './requests.js';

const BATCH = 500;
const AT_ONCE = 48;
/** A connection that gets no answer and is not closed either for so long is one that was forgotten. */
const RAW_MS = 20_000;

export interface HttpTarget {
  url: string;
  token: string;
  known: Known;
}

/** Make what valid requests name: a task that has ended, one that asks, and one that continues for hours. */
export async function prepareTarget(stack: Stack): Promise<HttpTarget> {
  const { slug, token } = await stack.createTenant();
  await stack.baton('hosts', 'bind', 'fuzz.example', '--tenant', slug, '--agent', 'echo', '--public');
  const caller = new RawCaller(stack.url(0), token);
  const taskOf = async (options: object): Promise<{ id: string; contextId: string }> => {
    const params = { ...sendParams('known', { metadata: { echo: options } }), configuration: {} };
    if ('delayMs' in options) params.configuration = { returnImmediately: true };
    return (await caller.call('SendMessage', params)).result!.task as { id: string; contextId: string };
  };
  const ended = await taskOf({});
  const [asks, lasts] = await Promise.all([
    taskOf({ askInput: true }),
    taskOf({ chunks: 2, delayMs: 600_000 }),
  ]);
  const known = { taskIds: [ended.id, asks.id, lasts.id], contextId: ended.contextId };
  return { url: stack.apis[0]!.url, token, known };
}

/** Requests that are almost right, many at a time over connections that are kept. */
export async function fuzzHttp(
  { url, token, known }: HttpTarget,
  cases: number,
  seed: number,
): Promise<Outcome> {
  const findings: Finding[] = [];
  let answered = 0;
  const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const arbitrary = httpCases(known, token);
  for (let from = 0; from < cases; from += BATCH) {
    const batch = fc.sample(arbitrary, { numRuns: Math.min(BATCH, cases - from), seed: seed + from });
    const tryOne = async (one: HttpCase, i: number): Promise<void> => {
      const answer = await exchange(url, agent, one);
      // What Node's own client refuses to send is for the raw cases.
      if (answer === 'not sent') return;
      const problem = judge(one, answer);
      answered += 1;
      if (problem) findings.push({ part: 'http', number: from + i, problem, input: shown(one) });
    };
    await inParallel(batch, AT_ONCE, tryOne);
  }
  agent.destroy();
  return { findings, answered };
}

/** Bytes that are no HTTP, or not quite: answered with 4xx, or closed. */
export async function fuzzRaw({ url, token }: HttpTarget, cases: number, seed: number): Promise<Outcome> {
  const findings: Finding[] = [];
  const valid = httpPost(
    '/agents/echo',
    { authorization: `Bearer ${token}` },
    '{"jsonrpc":"2.0","id":1,"method":"ListTasks"}',
  );
  const arbitrary = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(fc.nat(valid.length), fc.nat(20), fc.uint8Array({ maxLength: 20 }))
      .map(([at, gone, bytes]) =>
        Buffer.concat([
          Buffer.from(valid.slice(0, at)),
          Buffer.from(bytes),
          Buffer.from(valid.slice(at + gone)),
        ]),
      ),
    fc
      .tuple(fc.nat(3), fc.nat(valid.length))
      .map(([n, at]) => Buffer.from(valid.repeat(n) + valid.slice(0, at))),
  );
  for (let from = 0; from < cases; from += BATCH) {
    const batch = fc.sample(arbitrary, { numRuns: Math.min(BATCH, cases - from), seed: seed + from });
    await inParallel(batch, AT_ONCE, async (bytes, i) => {
      const problem = await tryRaw(url, bytes);
      if (problem) findings.push({ part: 'raw', number: from + i, problem, input: bytes.toString('base64') });
    });
  }
  return { findings, answered: cases };
}

async function tryRaw(url: string, bytes: Buffer): Promise<string | undefined> {
  const peer = await RawSocket.open(url);
  peer.send(bytes);
  peer.socket.end();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('neither answered nor closed'), RAW_MS);
  });
  const outcome = await Promise.race([peer.closed, late]);
  clearTimeout(timer);
  peer.close();
  if (outcome) return outcome;
  const bad = /HTTP\/1\.1 5\d\d[^]{0,300}/.exec(peer.received);
  return bad ? `status ${bad[0].slice(9)}` : undefined;
}

/** Act on each item, on so many of them at once. */
export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  act: (item: T, i: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const i = next++;
      await act(items[i]!, i);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

const shown = ({ method, path, headers, body }: HttpCase): string => {
  const { authorization, ...rest } = headers;
  const token = authorization?.startsWith('Bearer baton_') ? 'Bearer <token>' : authorization;
  return `${method} ${path} ${JSON.stringify({ authorization: token, ...rest })}\n${body?.toString('utf8', 0, 4_000) ?? ''}`;
};
