import { z } from 'zod';
import type { PushJob, RunJob, Tick } from './messaging.js';

const id = z.string().min(1);

/** Execute a run: ids only, the rest is read from Postgres. */
const runJob = z.object({
  tenantId: id,
  taskId: id,
  runId: id,
  attempt: z.int().min(0),
}) satisfies z.ZodType<RunJob>;

/** Execute several runs. */
const runsJob = z.object({ runs: z.array(runJob).min(1).max(1_000) });

/** Fire a schedule, if Postgres finds it due. */
const tick = z.object({
  tenantId: id,
  scheduleId: id,
  dueAt: z.number().transform((ms) => new Date(ms)),
}) satisfies z.ZodType<Tick>;

/** Look for due push configs. */
const pushJob = z.object({ tenantId: id, taskId: id }) satisfies z.ZodType<PushJob>;

/** Every kind of job by name: what producers may add and consumers receive. */
const jobCatalog = { run: runJob, runs: runsJob, tick, push: pushJob };

type JobCatalog = typeof jobCatalog;

/**
 * Reads a queue's entry.
 * @param expected the only job of that queue
 * @throws Error with a plain reason if the catalog has no such job
 */
export function decodeJob<N extends keyof JobCatalog>(
  expected: N,
  name: string,
  data: unknown,
): z.output<JobCatalog[N]> {
  if (name !== expected) throw new Error(`job "${name}" is not in the catalog of this queue`);
  const job = jobCatalog[expected].safeParse(data);
  if (!job.success) throw new Error(`job "${name}" is not in the catalog: ${z.prettifyError(job.error)}`);
  return job.data as z.output<JobCatalog[N]>;
}
