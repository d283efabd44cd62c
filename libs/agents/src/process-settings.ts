import { isBatonSecret } from '@baton/config';
import { z } from 'zod';
import { durationText } from './setting-fields.js';

/** The password of Postgres, and the credentials of `baton master-key vault`. */
const LEADS_TO_SECRETS = /^(PGPASSWORD|PGPASSFILE|(VAULT|BAO)_TOKEN)$/;

const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be the name of an environment variable')
  .refine((name) => !isBatonSecret(name), 'is a secret of Baton, which agents do not get')
  .refine((name) => !LEADS_TO_SECRETS.test(name), 'leads to secrets of Baton, which agents do not get');

/** The settings of the processes that run the code of an agent. Defaults come from the environment (`EXECUTOR_…`). */
export const processFields = {
  /** Names of further variables of the worker's environment that the agent's process receives. */
  env: z.array(variable).max(100).optional(),
  /** Names of secrets of the calling tenant that the agent may read, with `secret()` of its context. */
  secrets: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be the name of a secret'))
    .max(100)
    .optional(),
  /** JavaScript heap size of a process, in MiB. */
  memoryMb: z.int().min(32).max(65_536).optional(),
  /** Maximum time without a response of the process, for example in an endless loop. Read as milliseconds. */
  stall: durationText.optional(),
  /** Number of processes per worker that share the agent's turns. */
  processes: z.int().min(1).max(64).optional(),
  /** The turns that share a process: all tenants (`shared`), or the turns of one tenant (`tenant`). Default: shared. */
  isolation: z.enum(['shared', 'tenant']).optional(),
};

/** How the processes of an agent's code are started. */
export type CodeSettings = z.output<z.ZodObject<typeof processFields>>;
