import { z } from 'zod';
import type { RunJob, Tick } from './messaging.js';

const id = z.string().min(1);

/** Execute a run: ids only, the rest is read from Postgres. */
const runJob = z.object({
  tenantId: id,
  taskId: id,
  runId: id,
  attempt: z.int().min(0),
}) satisfies z.ZodType<RunJob>;

/** Fire a schedule, if Postgres finds it due. */
const tick = z.object({
  tenantId: id,
  scheduleId: id,
  dueAt: z.number().transform((ms) => new Date(ms)),
}) satisfies z.ZodType<Tick>;

/** Every job there is, by name: what producers may add and consumers will be given. */
const jobCatalog = { run: runJob, tick };

type Catalog = typeof jobCatalog;

/** Id of a run in the queue: adding the same id again while it waits is a no-op. BullMQ allows no `:` in it. */
export function jobIdOf({ runId, attempt }: RunJob): string {
  return `${runId}-${attempt}`;
}

/**
 * What a queue's entry holds.
 * @param expected the only job of that queue
 * @throws Error with a plain reason when it is none of the catalog
 */
export function decodeJob<N extends keyof Catalog>(
  expected: N,
  name: string,
  data: unknown,
): z.output<Catalog[N]> {
  if (name !== expected) throw new Error(`job "${name}" is not in the catalog of this queue`);
  const job = jobCatalog[expected].safeParse(data);
  if (!job.success) throw new Error(`job "${name}" is not in the catalog: ${z.prettifyError(job.error)}`);
  return job.data as z.output<Catalog[N]>;
}
