import { z } from 'zod';
import type { RunJob } from './messaging.js';

const id = z.string().min(1);

/** Execute a run: ids only, the rest is read from Postgres. */
const runJob = z.object({
  tenantId: id,
  taskId: id,
  runId: id,
  attempt: z.int().min(0),
}) satisfies z.ZodType<RunJob>;

/** Every job there is, by name: what producers may add and consumers will be given. */
const jobCatalog = z.discriminatedUnion('name', [z.object({ name: z.literal('run'), data: runJob })]);

export type Job = z.infer<typeof jobCatalog>;

/** Id of a job in the queue: adding the same id again while it waits is a no-op. BullMQ allows no `:` in it. */
export function jobIdOf(job: Job): string {
  return `${job.data.runId}-${job.data.attempt}`;
}

/** The job a queue entry holds. Throws with a plain reason when it is none of the catalog. */
export function decodeJob(name: string, data: unknown): Job {
  const job = jobCatalog.safeParse({ name, data });
  if (!job.success) throw new Error(`job "${name}" is not in the catalog: ${z.prettifyError(job.error)}`);
  return job.data;
}
