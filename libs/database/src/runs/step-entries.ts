import { z } from 'zod';
import type { Database, Statement } from '../connection/database.js';
import { entriesOf, stepId } from './journal-rows.js';
import { READABLE_ENTRIES } from './readable-entries.js';

/** The steps in the journal of an executor's task, without their results: $1 tenant $2 task */
const READ_STEPS: Statement = {
  name: 'journal-steps-2',
  text: `
SELECT position, value->'execution' AS execution, value->'id' AS id, value->'event' AS event, value->'name' AS name, value->'kind' AS kind,
  value->'at' AS at, value->'error' AS error, value->'decision' AS decision
FROM ${READABLE_ENTRIES}
WHERE value->'execution' IS NOT NULL ORDER BY position`,
};

/** One entry about a durable step of an executor. */
const stepRow = z.object({
  position: z.number(),
  execution: z.number(),
  id: z.number(),
  event: z.enum(['begun', 'failed', 'ended', 'asked', 'answered']),
  name: z.string().nullable(),
  kind: z.string().nullable(),
  at: z.string(),
  error: z.object({ name: z.string(), message: z.string() }).nullable(),
  decision: z.enum(['repeated', 'verified', 'asked', 'failed']).nullable().catch(null),
});
type StepRow = z.output<typeof stepRow>;

/** A durable step of an executor's task. */
export interface StepRecord {
  name: string;
  /** run, sleep, input, agent, patch, model, state or tool */
  kind: string;
  /** `waiting`: for a time, an answer or another agent. `running`: or it was, when its process died. */
  state: 'running' | 'waiting' | 'succeeded' | 'failed';
  /** How often it was begun. */
  attempts: number;
  /** ISO 8601 */
  startedAt: string;
  endedAt: string | null;
  /** The last error. */
  error: string | null;
  /** Position of the last entry about it in the journal, which has its result once it has ended. */
  position: number;
  /** The id of the call that it makes, if it calls another agent or a model. */
  callId: string;
  /** A process died while it ran, and this was done about the unknown outcome. */
  unknownOutcome?: 'repeated' | 'verified' | 'asked' | 'failed';
}

/** Kinds of steps that work, and do not wait. */
const WORKING_KINDS = new Set(['run', 'model', 'state', 'tool']);

/** The durable steps of a task in the order in which they began; empty if it has none. */
export async function readSteps(database: Database, tenantId: string, taskId: string): Promise<StepRecord[]> {
  const rows = await database.tenantQuery(tenantId, READ_STEPS, [tenantId, taskId]);
  const steps = new Map<string, StepRecord>();
  for (const row of entriesOf(stepRow, rows)) {
    const key = `${row.execution} ${row.id}`;
    steps.set(key, stepAfter(steps.get(key), row));
  }
  return [...steps.values()];
}

/** The record of a step, with the next entry of the journal about the step. */
function stepAfter(before: StepRecord | undefined, row: StepRow): StepRecord {
  const { position, execution, id, event, name, kind, at, error, decision } = row;
  const step = before && decision ? { ...before, unknownOutcome: decision } : before;
  const errorText = error && `${error.name}: ${error.message}`;
  if (event === 'begun' || !step) {
    const callId = stepId(execution, id);
    const known = step ?? {
      name: name ?? '',
      kind: kind ?? '',
      attempts: 0,
      startedAt: at,
      error: null,
      callId,
    };
    const state = WORKING_KINDS.has(kind ?? '') ? 'running' : 'waiting';
    return { ...known, position, state, attempts: known.attempts + 1, endedAt: null };
  }
  if (event === 'asked' || event === 'answered') return { ...step, position, state: 'waiting' };
  if (event === 'failed') return { ...step, position, state: 'waiting', error: errorText };
  return { ...step, position, state: error ? 'failed' : 'succeeded', endedAt: at, error: errorText };
}
