import { z } from 'zod';
import type { Database, Statement } from '../connection/database.js';
import { READABLE_ENTRIES } from './readable-entries.js';

/** Entries about steps and tool calls, without results. $1 tenant $2 task */
const READ_EFFECTS: Statement = {
  name: 'journal-effects',
  text: `
SELECT e.position, e.run_id, e.attempt,
  coalesce(r.state = 'running' AND r.attempt = e.attempt AND r.lease_expires_at > clock_timestamp(), false) AS is_live,
  e.value->'execution' AS execution, e.value->'id' AS id, e.value->'nth' AS nth, e.value->'name' AS name, e.value->'kind' AS kind,
  coalesce(e.value->>'event', e.value->>'kind') AS event, e.value->'at' AS at, e.value->'ms' AS ms,
  e.value->'error'->'name' AS error_name, e.value->'error'->'message' AS error, e.value->'decision' AS decision,
  e.value->'call' AS call, e.value->'tool' AS tool, e.value->'result'->'ok' AS ok
FROM ${READABLE_ENTRIES} LEFT JOIN runs r ON r.tenant_id = $1 AND r.id = e.run_id
WHERE CASE WHEN e.value->'execution' IS NOT NULL THEN e.value->>'event' IN ('begun', 'failed', 'ended', 'asked', 'answered', 'sent')
  ELSE e.value->>'kind' IN ('begun', 'result') END
ORDER BY e.position`,
};

/** $1 tenant $2 tasks */
const WITH_JOURNAL: Statement = {
  name: 'journal-of-tasks',
  text: `SELECT id FROM unnest($2::uuid[]) AS t(id)
WHERE EXISTS (SELECT FROM turn_journal j WHERE j.tenant_id = $1 AND j.task_id = t.id)`,
};

/** $1 tenant $2 task */
const HAS_LIVE_RUN: Statement = {
  name: 'task-has-live-run',
  text: `SELECT FROM tasks t JOIN runs r ON r.tenant_id = t.tenant_id AND r.id = t.active_run_id
WHERE t.tenant_id = $1 AND t.id = $2 AND r.state = 'running' AND r.lease_expires_at > clock_timestamp()`,
};

/** Whether a worker executes the task now. */
export async function hasLiveRun(database: Database, tenantId: string, taskId: string): Promise<boolean> {
  return (await database.tenantQuery(tenantId, HAS_LIVE_RUN, [tenantId, taskId])).length > 0;
}

/** The state of an effect outside of Baton. */
export const EFFECT_OUTCOMES = ['intended', 'sent', 'confirmed', 'failed', 'unknown'] as const;
export type EffectOutcome = (typeof EFFECT_OUTCOMES)[number];

/** The execution of a step, or the tool call that an llm agent makes. */
export interface EffectRecord {
  /** For a step: identifies it in its task. For a call: its id. Undefined: an earlier release made it. */
  of: { execution: number; nth: number } | { call: string } | undefined;
  name: string;
  kind: 'step' | 'tool';
  outcome: EffectOutcome;
  /** How often it was begun. */
  attempts: number;
  /** ISO 8601. Null: it was not noted. */
  begunAt: string | null;
  endedAt: string | null;
  error: string | null;
  /** What was done about an unknown outcome. */
  decision?: 'repeated' | 'verified' | 'asked' | 'failed';
  /** Position of the last entry about it in the journal. */
  position: number;
}

const effectRow = z.object({
  position: z.number(),
  run_id: z.string(),
  attempt: z.number(),
  is_live: z.boolean(),
  execution: z.number().nullable(),
  id: z.number().nullable().catch(null),
  nth: z.number().nullable().catch(null),
  name: z.string().nullable().catch(null),
  kind: z.string().nullable().catch(null),
  event: z.string(),
  at: z.string().nullable().catch(null),
  ms: z.number().nullable().catch(null),
  error_name: z.string().nullable().catch(null),
  error: z.string().nullable().catch(null),
  decision: z.enum(['repeated', 'verified', 'asked', 'failed']).nullable().catch(null),
  call: z.string().nullable().catch(null),
  tool: z.string().nullable().catch(null),
  ok: z.boolean().nullable().catch(null),
});
type EffectRow = z.output<typeof effectRow>;

/** Which of the tasks have a journal. */
export async function tasksWithJournal(
  database: Database,
  tenantId: string,
  taskIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.tenantQuery<{ id: string }>(tenantId, WITH_JOURNAL, [tenantId, taskIds]);
  return new Set(rows.map(({ id }) => id));
}

/**
 * The effects of a task in the order in which they began: steps that run a function or call a tool, and tool calls that an llm
 * agent has noted. Calls of the newest answer of a model without any note are not among them (`JournalStore.openCalls`).
 * @returns `begun`: by call, calls that were noted before they were sent and have no result
 */
export async function readEffects(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<{ effects: EffectRecord[]; begun: ReadonlyMap<string, EffectOutcome> }> {
  const rows = await database.tenantQuery(tenantId, READ_EFFECTS, [tenantId, taskId]);
  const steps = new Map<string, EffectRecord & { isSent: boolean; isTool: boolean }>();
  const calls: EffectRecord[] = [];
  const begun = new Map<string, EffectRow>();
  for (const value of rows) {
    const { data: row } = effectRow.safeParse(value);
    if (!row) continue;
    if (row.execution !== null) {
      const key = `${row.execution} ${row.id}`;
      const step = stepAfter(steps.get(key), row, row.execution);
      if (step) steps.set(key, step);
    } else if (row.event === 'begun') {
      if (row.call !== null) begun.set(row.call, row);
    } else if (row.tool !== null) {
      calls.push(callOf(row, row.tool, row.call === null ? undefined : begun.get(row.call)));
      if (row.call !== null) begun.delete(row.call);
    }
  }
  const effects = [...steps.values()].map(({ isSent: _, isTool: __, ...step }) => step);
  return {
    effects: [...effects, ...calls],
    begun: new Map([...begun].map(([call, row]) => [call, inFlight(row)])),
  };
}

const inFlight = ({ is_live: isLive }: EffectRow): EffectOutcome => (isLive ? 'sent' : 'unknown');

function stepAfter(
  before: (EffectRecord & { isSent: boolean; isTool: boolean }) | undefined,
  row: EffectRow,
  execution: number,
): (EffectRecord & { isSent: boolean; isTool: boolean }) | undefined {
  const { position, event, at, error } = row;
  if (event === 'begun') {
    const isTool = row.kind === 'tool';
    if (!isTool && row.kind !== 'run') return undefined;
    const first = before ?? {
      of: { execution, nth: row.nth ?? 1 },
      name: row.name ?? '',
      kind: isTool ? ('tool' as const) : ('step' as const),
      attempts: 0,
      begunAt: at,
    };
    const decision = row.decision ?? before?.decision;
    return {
      ...first,
      ...(decision && { decision }),
      attempts: first.attempts + 1,
      outcome: inFlight(row),
      endedAt: null,
      error: null,
      position,
      isSent: false,
      isTool,
    };
  }
  if (!before) return undefined;
  const step = { ...before, position, ...(row.decision && { decision: row.decision }) };
  const isApproval = before.isTool && !before.isSent;
  switch (event) {
    case 'sent':
      return { ...step, isSent: true, outcome: inFlight(row) };
    case 'asked':
    case 'answered':
      return { ...step, outcome: isApproval ? 'intended' : 'unknown' };
    case 'failed':
      return { ...step, outcome: row.decision ? 'unknown' : 'failed', error };
    default: {
      const failed = row.error_name === 'UnknownOutcome' ? 'unknown' : 'failed';
      return { ...step, outcome: row.error_name === null ? 'confirmed' : failed, endedAt: at, error };
    }
  }
}

/** A call with a result. If it is a failure, and another attempt had begun the call, the receiver was not asked again. */
function callOf(row: EffectRow, name: string, begun: EffectRow | undefined): EffectRecord {
  const { call, at, ms, ok, position } = row;
  const isOther = begun !== undefined && (begun.run_id !== row.run_id || begun.attempt !== row.attempt);
  const endedAt = at !== null && ms !== null ? endOf(at, ms) : null;
  return {
    of: call === null ? undefined : { call },
    name,
    kind: 'tool',
    outcome: ok ? 'confirmed' : isOther ? 'unknown' : 'failed',
    attempts: 1,
    begunAt: at,
    endedAt,
    error: null,
    position,
  };
}

/** An import may have any text and any number. */
function endOf(at: string, ms: number): string | null {
  const end = new Date(Date.parse(at) + ms);
  return Number.isNaN(end.getTime()) ? null : end.toISOString();
}
