import type { Excuse, FaultRecord, Observations, OddAnswer, Oddity } from '../observations.js';
import type { Finding } from './finding.js';

/** How long after its repair a fault may still be felt: pools and channels connect again. */
const AFTERMATH_MS = 5000;
const UNAVAILABLE = 503;
const INTERNAL = -32603;
/** What no caller may ever be shown; nor is `Internal error` a reason that a caller could do anything about. */
const TELLTALE =
  /^Internal error$|\b(SELECT|INSERT|UPDATE|FROM tasks|node_modules|at \w+ \(|postgres:\/\/|prisma)\b/i;

/** Whatever was odd must be explained by a fault of that moment; nothing else happened that should not. */
export function* checkAnswers({
  oddAnswers,
  faults,
  foreignAsks,
  crashes,
}: Observations): Generator<Finding> {
  for (const answer of oddAnswers) {
    const excuse = excuseOf(answer.outcome);
    if (excuse && faults.some((fault) => excuses(fault, excuse, answer))) continue;
    const detail = `${answer.method} at ${clock(answer.from)} to ${clock(answer.to)}: ${JSON.stringify(answer.outcome)}`;
    yield { defect: 'unexpected', task: answer.task, detail };
  }
  for (const { method, asker, outcome } of foreignAsks) {
    yield { defect: 'crossTenant', task: asker, detail: `${method}: ${outcome.slice(0, 500)}` };
  }
  for (const crash of crashes) yield { defect: 'unexpected', task: '-', detail: crash };
}

/** What would have to be excused; undefined = no fault excuses this. */
function excuseOf(outcome: Oddity): Excuse | undefined {
  switch (outcome.kind) {
    case 'broken':
    case 'silent':
      return outcome.kind;
    case 'http':
      return outcome.status === 503 && !TELLTALE.test(outcome.body) ? 'unavailable' : undefined;
    case 'error':
      // MCP has in the code what A2A has in the message.
      return [INTERNAL, UNAVAILABLE].includes(outcome.code) && !TELLTALE.test(outcome.message)
        ? 'unavailable'
        : undefined;
  }
}

function excuses(fault: FaultRecord, excuse: Excuse, { from, to, api }: OddAnswer): boolean {
  if (!fault.excuses.includes(excuse)) return false;
  if (fault.api !== undefined && fault.api !== api) return false;
  return from <= fault.to + AFTERMATH_MS && to >= fault.from;
}

const clock = (at: number): string => new Date(at).toISOString().slice(11, 23);
