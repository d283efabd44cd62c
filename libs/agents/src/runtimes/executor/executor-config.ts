import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';

const isInside = (path: string): boolean => !isAbsolute(path) && !normalize(path).startsWith('..');

/** The settings of an executor agent. */
export const executorConfig = z.strictObject({
  /** Path of the module inside the agent's folder. */
  module: z.string().min(1).refine(isInside, 'must be a path inside the folder of the agent').optional(),
});
