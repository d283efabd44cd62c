import { freePort } from '../support/ports.js';
import { isRunning } from '../support/local-run.js';
import { Stack } from '../support/stack.js';
import { fuzzCodecs } from './codec-cases.js';
import { type Finding, type Outcome, PARTS, type Part } from './finding.js';
import { type ContentTarget, fuzzModels, fuzzRemotes, fuzzSettings, fuzzTools } from './fuzz-content.js';
import { fuzzGrpc, type GrpcTarget } from './fuzz-grpc.js';
import { fuzzHttp, fuzzRaw, type HttpTarget, prepareTarget } from './fuzz-http.js';
import { KEY } from './judge.js';
import { fuzzStreams } from './fuzz-streams.js';
import { Neighbour } from './neighbour.js';
import { OddPeer } from './odd-peer.js';
import { STANDING } from './settings-cases.js';
import { PROGRAM } from './tool-cases.js';

export type Driver = 'redis' | 'postgres';

/** How many cases of each part. */
export type Cases = Readonly<Record<Part, number>>;

/** Of a hundred cases: those of content are slow, since each is an agent of its own and a task. */
const SHARES: Cases = {
  codec: 37,
  stream: 1,
  http: 42,
  raw: 5,
  grpc: 4,
  settings: 5,
  model: 2,
  tool: 2,
  remote: 2,
};

/** `cases` of all parts together, or of some of them. */
export function sharesOf(cases: number, only: readonly Part[] = PARTS): Cases {
  const whole = only.reduce((sum, part) => sum + SHARES[part], 0);
  const share = (part: Part) => (only.includes(part) ? Math.round((cases * SHARES[part]) / whole) : 0);
  return Object.fromEntries(PARTS.map((part) => [part, share(part)])) as Record<Part, number>;
}

export interface FuzzReport {
  driver: Driver;
  seed: number;
  parts: Partial<Record<Part, { cases: number; answered: number; endings: Record<string, number> }>>;
  findings: Finding[];
  /** What the processes have to say about themselves: crashes, errors in their logs; and cases that were not tried. */
  troubles: string[];
  neighbour: { answered: number; slowestMs: number };
}

/** Less than this of a part's cases that were tried is no run. */
const MIN_ANSWERED = 0.9;
/** Node's own client refuses to send about a tenth of the cases of gRPC: those headers are not allowed in HTTP/2. */
const MIN_ANSWERED_OF: Partial<Record<Part, number>> = { grpc: 0.8 };
/** What must have come of some cases of a part, so that a run which tests nothing does not pass. */
const MUST_END: Partial<Record<Part, readonly string[]>> = {
  settings: ['taken', 'not taken', 'completed'],
  model: ['completed', 'failed'],
  tool: ['completed', 'failed'],
  remote: ['completed', 'failed'],
};
/** With fewer cases chance decides. */
const ENOUGH = 20;

/** The whole run: codecs by themselves, then requests, bytes, settings, models, tools and remote agents at a live stack. */
export async function runFuzz(
  driver: Driver,
  cases: Cases,
  seed: number,
  progress: (line: string) => void = () => undefined,
): Promise<FuzzReport> {
  const grpcPort = await freePort();
  const stack = await Stack.start({
    driver,
    env: {
      GRPC_PORT: String(grpcPort),
      BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      // The odd peers are in this process.
      OUTBOUND_ALLOW: '127.0.0.1',
      COMPUTE_TIMEOUT_MS: '500',
      MCP_STDIO_ALLOW: `${process.execPath} ${PROGRAM}`,
    },
  });
  const peer = await OddPeer.start();
  try {
    return await fuzzStack(
      { stack, peer, driver, grpcUrl: `http://127.0.0.1:${grpcPort}` },
      cases,
      seed,
      progress,
    );
  } finally {
    await stack.stop();
    await peer.stop();
  }
}

async function fuzzStack(
  { stack, peer, driver, grpcUrl }: { stack: Stack; peer: OddPeer; driver: Driver; grpcUrl: string },
  cases: Cases,
  seed: number,
  progress: (line: string) => void,
): Promise<FuzzReport> {
  const { pids, url } = {
    pids: [...stack.apis, ...stack.workers].map(({ pid }) => pid),
    url: stack.apis[0]!.url,
  };
  const report: FuzzReport = {
    driver,
    seed,
    parts: {},
    findings: [],
    troubles: [],
    neighbour: { answered: 0, slowestMs: 0 },
  };
  const wire: HttpTarget & GrpcTarget = { ...(await prepareTarget(stack)), grpcUrl };
  const content = await prepareContent(stack, peer);
  const neighbour = new Neighbour(url, (await stack.createTenant()).token);
  const runs: Record<Part, (count: number, target: ContentTarget) => Outcome | Promise<Outcome>> = {
    codec: (count) => fuzzCodecs(count, seed),
    stream: (count, { ended }) => fuzzStreams(count, seed, ended),
    http: (count) => fuzzHttp(wire, count, seed),
    raw: (count) => fuzzRaw(wire, count, seed),
    grpc: (count) => fuzzGrpc(wire, count, seed),
    settings: (count, target) => fuzzSettings(target, count, seed),
    model: (count, target) => fuzzModels(target, count, seed),
    tool: (count, target) => fuzzTools(target, count, seed),
    remote: (count, target) => fuzzRemotes(target, count, seed),
  };
  for (const part of PARTS.filter((each) => cases[each] > 0)) {
    const endings: Record<string, number> = {};
    const ended = (state: string): void => void (endings[state] = (endings[state] ?? 0) + 1);
    const { findings, answered } = await runs[part](cases[part], { ...content, ended });
    report.parts[part] = { cases: cases[part], answered, endings };
    report.findings.push(...findings);
    progress(`${driver} ${part}: ${cases[part]} cases, ${findings.length} findings`);
  }
  await neighbour.stop();
  report.neighbour = { answered: neighbour.answered, slowestMs: Math.round(neighbour.slowestMs) };
  const dead = pids.filter((pid) => !isRunning(pid)).map((pid) => `process ${pid} has died`);
  const health = await fetch(`${url}/healthz`).then(
    ({ status }) => (status === 200 ? [] : [`/healthz answers ${status}`]),
    (error: unknown) => [`/healthz: ${String(error)}`],
  );
  report.troubles.push(...dead, ...health, ...neighbour.problems, ...errorsIn(stack), ...shortfalls(report));
  return report;
}

/** A tenant with a secret that its peers are shown, and an agent and a schedule that are there to be changed. */
async function prepareContent(stack: Stack, peer: OddPeer): Promise<Omit<ContentTarget, 'ended'>> {
  const { token } = await stack.createTenant();
  const { url } = stack.apis[0]!;
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/v1/${path}`, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  };
  await send('PUT', 'secrets/openai', { value: KEY, origins: [peer.origin, 'https://a.example'] });
  await send('PUT', `agents/${STANDING}`, { name: 'Standing', description: 'Stands', runtime: 'echo' });
  await send('POST', 'schedules', {
    name: STANDING,
    agent: 'echo',
    text: 'x',
    cron: '0 0 1 1 *',
    paused: true,
  });
  return { url, token, peer };
}

/** Parts of which too few cases were tried, or nothing came that must come of some. */
export function shortfalls({ parts, neighbour }: Pick<FuzzReport, 'parts' | 'neighbour'>): string[] {
  const of = PARTS.flatMap((part) => {
    const { cases, answered, endings } = parts[part] ?? { cases: 0, answered: 0, endings: {} };
    const least = cases * (MIN_ANSWERED_OF[part] ?? MIN_ANSWERED);
    if (answered < least) return [`${part}: only ${answered} of ${cases} cases were answered`];
    if (cases < ENOUGH) return [];
    const missing = (MUST_END[part] ?? []).filter((state) => !endings[state]);
    return missing.map((state) => `${part}: of ${cases} cases none is ${state}`);
  });
  return neighbour.answered > 0 ? of : [...of, "another tenant's echo was never answered"];
}

/** Lines of the logs that show a bug of ours, or a secret. */
function errorsIn({ apis, workers }: Stack): string[] {
  const lines = [...apis, ...workers].flatMap((process) => process.log().split('\n'));
  return lines
    .filter((line) => /"level":"(error|fatal)"|unhandled|UnhandledPromise/i.test(line) || line.includes(KEY))
    .map((line) => line.slice(0, 2_000))
    .slice(0, 20);
}

export const isClean = ({ findings, troubles }: FuzzReport): boolean =>
  findings.length + troubles.length === 0;

export function renderReport({ driver, seed, parts, findings, troubles, neighbour }: FuzzReport): string {
  const rows = Object.entries(parts).map(([part, { cases, answered, endings }]) => {
    const found = findings.filter((finding) => finding.part === part).length;
    const numbers = [cases, answered, found].map((n) => String(n).padStart(8));
    const ends = Object.entries(endings).map(([state, n]) => `${n} ${state}`);
    return `  ${part.padEnd(10)}${numbers.join('')}  ${ends.join(', ')}`;
  });
  const shown = findings
    .slice(0, 20)
    .map(({ part, number, problem, input }) => `\n${part} ${number}: ${problem}\n  ${input.slice(0, 1_500)}`);
  const more = findings.length > 20 ? [`\n… and ${findings.length - 20} more`] : [];
  return [
    `seed ${seed}, driver ${driver}`,
    `  ${'part'.padEnd(10)}   cases answered findings`,
    ...rows,
    `  another tenant's echo: ${neighbour.answered} answered, the slowest in ${neighbour.slowestMs} ms`,
    ...troubles.map((trouble) => `  ${trouble}`),
    ...shown,
    ...more,
  ].join('\n');
}
