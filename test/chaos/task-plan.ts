import { createHash } from 'node:crypto';
import type { Expected, Generation } from './observations.js';
import type { Random } from './random.js';

/** How often each kind of task comes, in percent. */
const KINDS = { stream: 20, cut: 15, block: 15, later: 15, turns: 15, cancel: 10, mcp: 10 } as const;

/**
 * - `stream`: a streaming send, resumed elsewhere when its connection breaks
 * - `cut`: the same, and the caller itself breaks off and resumes on another API
 * - `block`: a blocking send
 * - `later`: a send that is answered at once, then a subscription
 * - `turns`: the scribe, whose questions are answered on whichever API
 * - `cancel`: a stream that is canceled on another API in the middle
 * - `mcp`: a tool call over MCP by a client that has tasks, which polls on any API
 * - `burst`: like `later`; many at once, over what the workers can hold
 */
export type TaskKind = keyof typeof KINDS | 'burst';

/** Everything about one task that its caller decides, drawn before it begins. */
export interface TaskPlan {
  name: string;
  kind: TaskKind;
  /** Index of its tenant. */
  tenant: number;
  generation: Generation;
  expected: Expected;
  delayMs: number;
  /** Frames after which the caller breaks its own connection. */
  cuts: number[];
  /** Whether a second reader follows on another API, and from where. */
  companion: 'none' | 'from-start' | 'from-now';
  /** For what is decided on the way, e.g. which API to turn to. */
  random: Random;
}

/** The n-th task of a run. */
export function planTask(seed: Random, n: number, tenants: readonly string[]): TaskPlan {
  const random = seed.fork('task', n);
  const kind = random.weighted(KINDS);
  const tenant = random.integer(0, tenants.length - 1);
  const mark = markOf(seed, tenant);
  const word = random.hex(8);
  const text = (turn: number): string => `${mark} ${kind} ${n} ${word} ${turn}`;
  const chunks = random.chance(0.02) ? random.integer(200, 400) : random.integer(5, 40);
  const delayMs = chunks >= 200 ? 2 : random.integer(20, 120);
  const lines = random.integer(3, 12);
  const turns = random.integer(2, 4);
  return {
    name: `${kind}-${n}`,
    kind,
    tenant,
    generation: random.chance(0.7) ? '1.0' : '0.3',
    expected:
      kind === 'turns'
        ? { agent: 'scribe', turns: Array.from({ length: turns }, (_, i) => ({ text: text(i + 1), lines })) }
        : { agent: 'echo', text: text(1), chunks },
    delayMs,
    cuts: kind === 'cut' ? Array.from({ length: random.integer(1, 4) }, () => random.integer(1, chunks)) : [],
    companion: random.weighted({ none: 75, 'from-start': 15, 'from-now': 10 }),
    random,
  };
}

/** One short task of a burst. */
export function planBurstTask(seed: Random, burst: number, n: number, tenants: readonly string[]): TaskPlan {
  const random = seed.fork('burst', burst, n);
  const tenant = random.integer(0, tenants.length - 1);
  return {
    name: `burst-${burst}.${n}`,
    kind: 'burst',
    tenant,
    generation: '1.0',
    expected: { agent: 'echo', text: `${markOf(seed, tenant)} burst ${burst} ${n}`, chunks: 3 },
    delayMs: 40,
    cuts: [],
    companion: 'none',
    random,
  };
}

/** What all messages of a tenant carry. */
export const markOf = (seed: Random, tenant: number): string => `mark-${seed.fork('mark', tenant).hex(12)}`;

/** A message's id follows from its task: a run with the same seed sends the same ids. */
export function messageIdOf(plan: TaskPlan, turn: number, seed: string): string {
  const hash = createHash('sha256').update(`${seed}/${plan.name}/${turn}`).digest('hex');
  return `${plan.name}-${turn}-${hash.slice(0, 12)}`;
}
