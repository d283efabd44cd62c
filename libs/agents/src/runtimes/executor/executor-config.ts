import { isBatonSecret } from '@baton/config';
import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';
import { durationText } from '../llm/duration.js';

const isInside = (path: string): boolean => !isAbsolute(path) && !normalize(path).startsWith('..');

const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be the name of an environment variable')
  .refine((name) => !isBatonSecret(name), 'is a secret of Baton, which agents do not get');

/** The settings of an executor agent. What is not set comes from the environment (`EXECUTOR_…`). */
export const executorConfig = z.strictObject({
  /** Path of the module inside the agent's folder. */
  module: z.string().min(1).refine(isInside, 'must be a path inside the folder of the agent').optional(),
  /** Names of variables of the worker's environment that the agent's process gets as well. */
  env: z.array(variable).max(100).optional(),
  /** Size of the heap of JavaScript of a process, in MiB. */
  memoryMb: z.int().min(32).max(65_536).optional(),
  /** How long a process may give no sign of life, e.g. because it computes without a pause. */
  stall: durationText.optional(),
  /** Processes that share the agent's turns, in each worker. */
  processes: z.int().min(1).max(64).optional(),
});
