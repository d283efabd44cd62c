import { isRunning } from '../support/local-run.js';
import type { Stack } from '../support/stack.js';
import { fuzzCodecs } from './codec-cases.js';
import type { Finding } from './finding.js';
import { fuzzHttp, fuzzRaw, prepareTarget } from './fuzz-http.js';

export interface FuzzReport {
  cases: Record<'codec' | 'http' | 'raw', number>;
  seed: number;
  findings: Finding[];
  /** What the processes have to say about themselves: crashes, errors in their logs. */
  troubles: string[];
}

/** The whole run: codecs by themselves, then requests and bytes at a live stack. */
export async function runFuzz(
  stack: Stack,
  cases: number,
  seed: number,
  progress: (line: string) => void = () => undefined,
): Promise<FuzzReport> {
  const share = { codec: Math.round(cases * 0.4), raw: Math.round(cases * 0.05) };
  const counts = { ...share, http: cases - share.codec - share.raw };
  const pids = [...stack.apis, ...stack.workers].map(({ pid }) => pid);
  const findings = fuzzCodecs(counts.codec, seed);
  progress(`codecs: ${counts.codec} cases, ${findings.length} findings`);
  const target = await prepareTarget(stack);
  findings.push(...(await fuzzHttp(target, counts.http, seed)));
  progress(`http: ${counts.http} cases, ${findings.length} findings so far`);
  findings.push(...(await fuzzRaw(target, counts.raw, seed)));
  progress(`raw: ${counts.raw} cases, ${findings.length} findings in all`);
  const dead = pids.filter((pid) => !isRunning(pid)).map((pid) => `process ${pid} has died`);
  const health = await fetch(`${target.url}/healthz`).then(
    ({ status }) => (status === 200 ? [] : [`/healthz answers ${status}`]),
    (error: unknown) => [`/healthz: ${String(error)}`],
  );
  return { cases: counts, seed, findings, troubles: [...dead, ...health, ...errorsIn(stack)] };
}

/** Lines of the logs that speak of a bug of ours. */
function errorsIn({ apis, workers }: Stack): string[] {
  const lines = [...apis, ...workers].flatMap((process) => process.log().split('\n'));
  return lines
    .filter((line) => /"level":"(error|fatal)"|unhandled|UnhandledPromise/i.test(line))
    .slice(0, 20);
}

export function renderReport({ cases, seed, findings, troubles }: FuzzReport): string {
  const rows = Object.entries(cases).map(([part, count]) => {
    const found = findings.filter((finding) => finding.part === part).length;
    return `  ${part.padEnd(8)}${String(count).padStart(8)} cases ${String(found).padStart(5)} findings`;
  });
  const shown = findings
    .slice(0, 20)
    .map(({ part, number, problem, input }) => `\n${part} ${number}: ${problem}\n  ${input.slice(0, 1_500)}`);
  const more = findings.length > 20 ? [`\n… and ${findings.length - 20} more`] : [];
  return [`seed ${seed}`, ...rows, ...troubles.map((trouble) => `  ${trouble}`), ...shown, ...more].join(
    '\n',
  );
}
