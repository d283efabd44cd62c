import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';

const isInside = (path: string): boolean => !isAbsolute(path) && !normalize(path).startsWith('..');

const config = z.strictObject({
  /** Path of the module inside the agent's folder. */
  module: z.string().min(1).refine(isInside, 'must be a path inside the folder of the agent').optional(),
});

/** The settings of an executor agent. Throws an Error that names the wrong field. */
export function executorConfig(raw: Record<string, unknown>): z.output<typeof config> {
  const result = config.safeParse(raw);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new Error(`${['config', ...(issue?.path ?? [])].join('.')}: ${issue?.message ?? 'is not valid'}`);
}
